"""What a replica reports when records are lost, or may be."""

from dataclasses import dataclass
from typing import Protocol

from ottla.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class UncleanStart:
    """What an uncleanly elected leader has, and what it last heard from the leader before it."""

    partition: TopicPartition
    broker: BrokerId
    leader_epoch: int
    end_offset: int
    kept_until: int
    """Behind it the log may be this leader's own, and not what others acknowledged."""
    heard_high_watermark: int


@dataclass(frozen=True, slots=True)
class LogCut:
    """A follower cut its log to agree with its leader: what stood from ``start`` up to ``end`` is gone.

    After a crash the high watermark is that of the last checkpoint: more may have been committed.
    """

    partition: TopicPartition
    broker: BrokerId
    leader: BrokerId
    leader_epoch: int
    start: int
    end: int
    high_watermark: int


class LossListener(Protocol):
    """Who keeps what replicas report."""

    def on_unclean_start(self, start: UncleanStart) -> None:
        """A replica leads without having been in sync."""

    def on_log_cut(self, cut: LogCut) -> None:
        """A follower cut its log."""
