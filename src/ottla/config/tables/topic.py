"""What a topic may set for itself; ``<`` names the broker settings that stand behind it."""

TABLE = """
cleanup.policy list delete {compact,delete} <log.cleanup.policy
    What happens to old segments: delete, compact, or both.
compression.gzip.level int -1 -1|1..9 <compression.gzip.level no-effect
    The level when the broker itself compresses with gzip.
compression.lz4.level int 9 1..17 <compression.lz4.level no-effect
    The level when the broker itself compresses with lz4.
compression.type string producer {uncompressed,zstd,lz4,snappy,gzip,producer} <compression.type
    How records are stored: as the producer sent them, or recompressed with this codec.
compression.zstd.level int 3 -131072..22 <compression.zstd.level no-effect
    The level when the broker itself compresses with zstd.
delete.retention.ms long 86400000 >=0 <log.cleaner.delete.retention.ms
    How long a deletion's marker stays in a compacted log.
file.delete.delay.ms long 60000 >=0 <log.segment.delete.delay.ms
    How long a deleted file stays on disk.
flush.messages long 9223372036854775807 >=1 <log.flush.interval.messages
    How many records may be appended before the log is forced to disk.
flush.ms long 9223372036854775807 >=0 <log.flush.interval.ms,log.flush.scheduler.interval.ms
    How long a record may wait before the log is forced to disk.
follower.replication.throttled.replicas list ""
    Whose fetching is throttled: * or partition:broker, separated by commas.
index.interval.bytes int 4096 >=0 <log.index.interval.bytes
    How many bytes lie between two entries of the offset index.
leader.replication.throttled.replicas list ""
    Whose answers to followers are throttled: * or partition:broker, separated by commas.
local.retention.bytes long -2 >=-2 <log.local.retention.bytes no-effect
    How much a tiered log keeps on this disk.
local.retention.ms long -2 >=-2 <log.local.retention.ms no-effect
    How much a tiered log keeps on this disk.
max.compaction.lag.ms long 9223372036854775807 >=1 <log.cleaner.max.compaction.lag.ms
    The longest time a record may stay uncompacted.
max.message.bytes int 1048588 >=0 <message.max.bytes
    The largest batch that is accepted.
message.downconversion.enable boolean true <log.message.downconversion.enable no-effect
    Whether records are converted for clients of old formats.
message.format.version string 3.0-IV1 version <log.message.format.version no-effect
    The record format, which is the same since Kafka 3.0.
message.timestamp.after.max.ms long 9223372036854775807 >=0 <log.message.timestamp.after.max.ms
    How far a record's timestamp may lie after the broker's time.
message.timestamp.before.max.ms long 9223372036854775807 >=0 <log.message.timestamp.before.max.ms
    How far a record's timestamp may lie before the broker's time.
message.timestamp.difference.max.ms long 9223372036854775807 >=0 <log.message.timestamp.difference.max.ms
    How far a record's timestamp may lie from the broker's time; the two settings for before and after replace it.
message.timestamp.type string CreateTime {CreateTime,LogAppendTime} <log.message.timestamp.type
    Whether a record's timestamp is its producer's or the time of the append.
min.cleanable.dirty.ratio double 0.5 0..1 <log.cleaner.min.cleanable.ratio
    How much of a log must be uncleaned before the cleaner looks at it.
min.compaction.lag.ms long 0 >=0 <log.cleaner.min.compaction.lag.ms
    The shortest time a record stays uncompacted.
min.insync.replicas int 1 >=1 <min.insync.replicas
    How many replicas must be in sync for a write with acks=all.
preallocate boolean false <log.preallocate no-effect
    Whether a new segment's file gets its full size at once.
remote.log.copy.disable boolean false no-effect
    Tiered storage, which Ottla does not have.
remote.log.delete.on.disable boolean false no-effect
    Tiered storage, which Ottla does not have.
remote.storage.enable boolean false unsupported
    Tiered storage, which Ottla does not have.
retention.bytes long -1 <log.retention.bytes
    How large a partition may become before its oldest segments go; -1 is no limit.
retention.ms long 604800000 >=-1 <log.retention.ms,log.retention.minutes,log.retention.hours
    How long a segment is kept; -1 is for ever.
segment.bytes int 1073741824 >=14 <log.segment.bytes
    The largest size of a segment.
segment.index.bytes int 10485760 >=4 <log.index.size.max.bytes
    The largest size of an offset index.
segment.jitter.ms long 0 >=0 <log.roll.jitter.ms,log.roll.jitter.hours
    How much earlier a segment may roll by chance.
segment.ms long 604800000 >=1 <log.roll.ms,log.roll.hours
    After how long a new segment begins.
unclean.leader.election.enable boolean false <unclean.leader.election.enable
    Whether a replica outside the ISR may become leader when no other is left, at the price of lost records.
"""  # noqa: E501
