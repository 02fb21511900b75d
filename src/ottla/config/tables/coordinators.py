"""Groups and transactions."""

TABLE = """
group.initial.rebalance.delay.ms int 3000
    How long a new group waits for more members.
group.max.session.timeout.ms int 1800000
    The longest session time-out a member may ask for.
group.max.size int 2147483647 >=1
    How many members a group may have.
group.min.session.timeout.ms int 6000
    The shortest session time-out a member may ask for.
offset.metadata.max.bytes int 4096
    How many bytes of text a committed offset may carry.
offsets.commit.required.acks short -1
    The acks of a committed offset; -1 is all.
offsets.commit.timeout.ms int 5000 >=1
    How long a commit waits for the replicas.
offsets.load.buffer.size int 5242880 >=1 no-effect
    How many bytes of the offsets topic are read at once.
offsets.retention.check.interval.ms long 600000 >=1
    How often expired offsets are looked for.
offsets.retention.minutes int 10080 >=1
    How long the offsets of an empty group are kept.
offsets.topic.compression.codec int 0 0..4 no-effect
    The codec of the offsets topic, by its number.
offsets.topic.num.partitions int 50 >=1
    How many partitions the offsets topic gets.
offsets.topic.replication.factor short 3 >=1
    How many replicas the offsets topic gets.
offsets.topic.segment.bytes int 104857600 >=1
    The segment size of the offsets topic.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 >=1
    How often transactions whose time is up are aborted.
transaction.max.timeout.ms int 900000 >=1
    The longest time-out a transaction may ask for.
transaction.partition.verification.enable boolean true cluster-wide
    Whether a transactional write is checked with its coordinator first.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 >=1
    How often expired transactional ids are removed.
transaction.state.log.load.buffer.size int 5242880 >=1 no-effect
    How many bytes of the transaction topic are read at once.
transaction.state.log.min.isr int 2 >=1
    How many replicas of the transaction topic must be in sync.
transaction.state.log.num.partitions int 50 >=1
    How many partitions the transaction topic gets.
transaction.state.log.replication.factor short 3 >=1
    How many replicas the transaction topic gets.
transaction.state.log.segment.bytes int 104857600 >=1
    The segment size of the transaction topic.
transaction.two.phase.commit.enable boolean false
    Whether a transaction may wait for somebody else's decision, without a time-out (KIP-939).
transactional.id.expiration.ms int 604800000 >=1
    How long an unused transactional id is kept.
"""
