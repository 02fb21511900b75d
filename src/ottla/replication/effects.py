"""What a partition's leader or follower wants done. The host performs them in order."""

from dataclasses import dataclass
from typing import TypeAlias

from ottla.model.ids import BrokerId, LeaderEpoch, Offset


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """All before this offset is on every replica that counts: consumers may read it."""

    to: Offset


@dataclass(frozen=True, slots=True)
class AssignEpoch:
    """Note in the log that this leader epoch begins here, even before it has records."""

    leader_epoch: LeaderEpoch
    start_offset: Offset


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A proposed member and the broker epoch of its last fetch (-1 where none is known)."""

    broker: BrokerId
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller to write this ISR; the answer quotes ``change``."""

    change: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    members: tuple[IsrMember, ...]
    reason: str

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        """The proposed ids, in order."""
        return tuple(member.broker for member in self.members)


LeaderEffect: TypeAlias = HighWatermarkAdvanced | AssignEpoch | ProposeIsr


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log's tail: records from this offset on are not the leader's."""

    offset: Offset
    reason: str


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Drop the whole log and begin again, empty, at this offset."""

    offset: Offset
    reason: str


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append the records of this answer, then report ``appended`` with the leader's offsets."""


@dataclass(frozen=True, slots=True)
class FollowLeader:
    """Take over the leader's high watermark and log start, as far as the own log reaches."""

    high_watermark: Offset
    log_start_offset: Offset


@dataclass(frozen=True, slots=True)
class FindLeaderOffset:
    """Ask the leader for its latest offset, or for its log start."""

    earliest: bool


@dataclass(frozen=True, slots=True)
class BackOff:
    """Leave the partition alone for a while, then fetch again."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Fetch this partition no more until the controller speaks again."""

    reason: str


FollowerEffect: TypeAlias = (
    TruncateTo | RestartAt | AppendFetched | FollowLeader | FindLeaderOffset | BackOff | StopFetching
)
