"""How replicas follow their leaders."""

TABLE = """
replica.lag.time.max.ms long 30000
    A follower that has not caught up for this long leaves the ISR.
replica.fetch.max.bytes int 1048576 >=0
    How many bytes of one partition a follower asks for at once.
replica.fetch.min.bytes int 1
    How many bytes a follower wants before its leader answers.
replica.fetch.response.max.bytes int 10485760 >=0
    How many bytes of all partitions a follower asks for at once.
replica.fetch.wait.max.ms int 500
    How long a leader may hold a follower's fetch that finds nothing.
replica.fetch.backoff.ms int 1000 >=0
    How long a follower leaves a partition alone after an error.
replica.socket.timeout.ms int 30000
    How long a follower waits for its leader's answer.
replica.socket.receive.buffer.bytes int 65536 no-effect
    The receive buffer of a follower's connection to its leader.
replica.high.watermark.checkpoint.interval.ms long 5000
    How often the high watermarks are written to disk.
replica.selector.class string null
    How the replica that a consumer reads from is chosen: org.apache.kafka.common.replica.RackAwareReplicaSelector takes one in the consumer's rack (client.rack); nothing is the leader.
num.replica.fetchers int 1 cluster-wide
    How many connections a follower keeps to each leader.
fetch.max.bytes int 57671680 >=1024
    How many bytes one fetch may return, whatever it asks for.
max.incremental.fetch.session.cache.slots int 1000 >=0
    How many fetch sessions are kept.
replication.quota.window.num int 11 >=1 no-effect
    How many samples the replication throttle keeps.
replication.quota.window.size.seconds int 1 >=1 no-effect
    How long one sample of the replication throttle lasts.
"""  # noqa: E501
