"""Logs: segments, retention, compaction, flushing, and the defaults of every topic."""

TABLE = """
log.dir string /tmp/kafka-logs
    The directory of the logs, when log.dirs is not set.
log.dirs string null
    The directories of the logs, separated by commas.
compression.type string producer {uncompressed,zstd,lz4,snappy,gzip,producer} cluster-wide
    How records are stored: as the producer sent them, or recompressed with this codec.
compression.gzip.level int -1 -1|1..9 cluster-wide no-effect
    The level when the broker itself compresses with gzip.
compression.lz4.level int 9 1..17 cluster-wide no-effect
    The level when the broker itself compresses with lz4.
compression.zstd.level int 3 -131072..22 cluster-wide no-effect
    The level when the broker itself compresses with zstd.
log.cleaner.backoff.ms long 15000 >=0 cluster-wide
    How long the log cleaner sleeps when there is nothing to clean.
log.cleaner.dedupe.buffer.size long 134217728 cluster-wide no-effect
    How much memory the log cleaner may use to find the last record of each key.
log.cleaner.delete.retention.ms long 86400000 >=0 cluster-wide
    How long a deletion's marker stays in a compacted log.
log.cleaner.enable boolean true
    Whether compacted topics are cleaned.
log.cleaner.io.buffer.load.factor double 0.9 cluster-wide no-effect
    How full the cleaner's buffer may become.
log.cleaner.io.buffer.size int 524288 >=0 cluster-wide no-effect
    The size of the cleaner's buffers.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 cluster-wide no-effect
    How much the cleaner may read and write in a second.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 >=1 cluster-wide
    The longest time a record may stay uncompacted.
log.cleaner.min.cleanable.ratio double 0.5 0..1 cluster-wide
    How much of a log must be uncleaned before the cleaner looks at it.
log.cleaner.min.compaction.lag.ms long 0 >=0 cluster-wide
    The shortest time a record stays uncompacted.
log.cleaner.threads int 1 >=0 cluster-wide no-effect
    How many logs are cleaned at one time.
log.cleanup.policy list delete {compact,delete} cluster-wide
    What happens to old segments: delete, compact, or both.
log.flush.interval.messages long 9223372036854775807 >=1 cluster-wide
    How many records may be appended before the log is forced to disk.
log.flush.interval.ms long null cluster-wide
    How long a record may wait before the log is forced to disk.
log.flush.offset.checkpoint.interval.ms int 60000 >=0
    How often the recovery points are written.
log.flush.scheduler.interval.ms long 9223372036854775807
    How long a record may wait before the log is forced to disk, where log.flush.interval.ms does not say.
log.flush.start.offset.checkpoint.interval.ms int 60000 >=0 no-effect
    How often the log start offsets are written.
log.index.interval.bytes int 4096 >=0 cluster-wide
    How many bytes lie between two entries of the offset index.
log.index.size.max.bytes int 10485760 >=4 cluster-wide
    The largest size of an offset index.
log.message.downconversion.enable boolean true cluster-wide no-effect
    Whether records are converted for clients of old formats.
log.message.format.version string 3.0-IV1 version no-effect
    The record format, which is the same since Kafka 3.0.
log.message.timestamp.after.max.ms long 9223372036854775807 >=0 cluster-wide
    How far a record's timestamp may lie after the broker's time.
log.message.timestamp.before.max.ms long 9223372036854775807 >=0 cluster-wide
    How far a record's timestamp may lie before the broker's time.
log.message.timestamp.difference.max.ms long 9223372036854775807 >=0 cluster-wide
    How far a record's timestamp may lie from the broker's time; the two settings for before and after replace it.
log.message.timestamp.type string CreateTime {CreateTime,LogAppendTime} cluster-wide
    Whether a record's timestamp is its producer's or the time of the append.
log.preallocate boolean false cluster-wide no-effect
    Whether a new segment's file gets its full size at once.
log.retention.bytes long -1 cluster-wide
    How large a partition's log may become before its oldest segments go; -1 is no limit.
log.retention.check.interval.ms long 300000 >=1
    How often old segments are looked for.
log.retention.hours int 168
    How many hours a segment is kept, when neither minutes nor milliseconds are set.
log.retention.minutes int null
    How many minutes a segment is kept, when milliseconds are not set.
log.retention.ms long null cluster-wide
    How many milliseconds a segment is kept; -1 is for ever.
log.roll.hours int 168 >=1
    After how many hours a new segment begins, when milliseconds are not set.
log.roll.jitter.hours int 0 >=0
    How many hours earlier a segment may roll by chance, when milliseconds are not set.
log.roll.jitter.ms long null cluster-wide
    How many milliseconds earlier a segment may roll by chance.
log.roll.ms long null cluster-wide
    After how many milliseconds a new segment begins.
log.segment.bytes int 1073741824 >=14 cluster-wide
    The largest size of a segment.
log.segment.delete.delay.ms long 60000 >=0 cluster-wide
    How long a deleted file stays on disk.
log.dir.failure.timeout.ms long 30000 >=1 no-effect
    How long a failed log directory may stay unreported.
message.max.bytes int 1048588 >=0 cluster-wide
    The largest batch that is accepted.
min.insync.replicas int 1 >=1 cluster-wide
    How many replicas must be in sync for a write with acks=all.
num.recovery.threads.per.data.dir int 1 >=1 cluster-wide no-effect
    How many logs of one directory are recovered at one time.
producer.id.expiration.ms int 86400000 >=1 cluster-wide
    How long the state of a silent idempotent producer is kept.
"""  # noqa: E501
