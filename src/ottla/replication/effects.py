"""What a partition's leader or follower wants done. The host performs them in order."""

from typing import TypeAlias

from msgspec import Struct

from ottla.model.ids import BrokerId, LeaderEpoch, Offset


class HighWatermarkAdvanced(Struct, frozen=True):
    """All before this offset is on every replica that counts: consumers may read it."""

    to: Offset


class AssignEpoch(Struct, frozen=True):
    """Note in the log that this leader epoch begins here, even before it has records."""

    leader_epoch: LeaderEpoch
    start_offset: Offset


class IsrMember(Struct, frozen=True):
    """A proposed member and the broker epoch of its last fetch (-1 where none is known)."""

    broker: BrokerId
    broker_epoch: int = -1


class ProposeIsr(Struct, frozen=True):
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


class TruncateTo(Struct, frozen=True):
    """Truncate the log: records from this offset on are not in the leader's."""

    offset: Offset
    reason: str


class RestartAt(Struct, frozen=True):
    """Drop the whole log and begin again, empty, at this offset."""

    offset: Offset
    reason: str


class AppendFetched(Struct, frozen=True):
    """Append the records of this answer, then report ``appended`` with the leader's offsets."""


class FollowLeader(Struct, frozen=True):
    """Take over the leader's high watermark and log start, as far as the own log reaches."""

    high_watermark: Offset
    log_start_offset: Offset


class FindLeaderOffset(Struct, frozen=True):
    """Ask the leader for its latest offset, or for its log start."""

    earliest: bool


class BackOff(Struct, frozen=True):
    """Leave the partition alone for a while, then fetch again."""

    reason: str


class StopFetching(Struct, frozen=True):
    """Stop fetching this partition until the controller sends a new request."""

    reason: str


FollowerEffect: TypeAlias = (
    TruncateTo | RestartAt | AppendFetched | FollowLeader | FindLeaderOffset | BackOff | StopFetching
)
