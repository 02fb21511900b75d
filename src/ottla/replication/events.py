"""What a partition's leader or follower is told: facts, with the epochs they belong to."""

from dataclasses import dataclass

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True)
class Elected:
    """A LeaderAndIsr request that names this broker leader, with what its log holds."""

    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    end_offset: Offset
    high_watermark: Offset
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class IsrChangeAnswered:
    """The controller's answer to one proposed ISR; the numbers count only without an error.

    ``proposed_in`` and ``change`` say which proposal: an answer may come after the leadership it
    was asked for is long gone.
    """

    proposed_in: LeaderEpoch
    change: int
    error: ErrorCode
    leader_epoch: LeaderEpoch = NO_EPOCH
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """Where an epoch ends in a log: ``(-1, -1)`` when that is not known."""

    epoch: LeaderEpoch
    end_offset: Offset


@dataclass(slots=True)
class PartitionFetched:
    """One partition of a leader's Fetch answer, with the offset and epoch that were asked.

    Not frozen: one is made for every partition of every answer.
    """

    leader_epoch: int
    fetch_offset: int
    error: int
    high_watermark: int
    log_start_offset: int
    record_bytes: int
    diverging: EpochEndOffset | None = None


@dataclass(frozen=True, slots=True)
class LeaderOffsetFound:
    """A leader's ListOffsets answer: its latest offset, or with ``earliest`` its log start."""

    leader_epoch: LeaderEpoch
    earliest: bool
    error: ErrorCode
    offset: Offset
