"""The settings of one partition's log: topic-level names, with ``_`` for ``.``."""

from dataclasses import dataclass

LONG_MAX = 2**63 - 1
NEVER_MS = LONG_MAX
"""What Kafka writes for a time that never comes."""
UNLIMITED = LONG_MAX
"""What Kafka writes for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """A topic's settings after its overrides and the broker's defaults were merged."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = UNLIMITED
    flush_ms: int = NEVER_MS
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    max_compaction_lag_ms: int = NEVER_MS
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = NEVER_MS
    message_timestamp_before_max_ms: int = NEVER_MS
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes_old_segments(self) -> bool:
        return "delete" in self.cleanup_policy
