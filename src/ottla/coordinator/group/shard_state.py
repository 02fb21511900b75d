"""What the parts of a group shard share: its groups, its timers and the writes under way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from ottla.config.group import GroupConfig
from ottla.coordinator.group.apply import StoredState
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import Member
from ottla.coordinator.group.requests import Commit, Join
from ottla.coordinator.shard import Writes
from ottla.coordinator.timers import Timers
from ottla.model.ids import TopicPartition


class TimerKind(IntEnum):
    """Which deadline has passed."""

    MEMBER = 0
    PENDING_MEMBER = 1
    JOIN = 2
    SYNC = 3
    EXPIRY = 4


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Offsets are being written; the commit is answered with the outcome."""

    token: int
    request: Commit
    too_large: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class DropOffsets:
    """Tombstones of offsets are being written; also the group's own if it is dead."""

    group: Group


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """The leader's assignment is being written; members get their shares once it is committed."""

    group: Group
    generation: int


@dataclass(frozen=True, slots=True)
class StoreEmptyGroup:
    """A group that lost its last member is being written; nobody waits for it."""


@dataclass(frozen=True, slots=True)
class ReplaceStaticMember:
    """A static member's new id is being written; its JoinGroup is answered with the outcome."""

    group: Group
    member: Member
    request: Join
    old_id: str
    new_id: str
    old_leader: str | None
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int


GroupWrite: TypeAlias = CommitOffsets | DropOffsets | StoreAssignment | StoreEmptyGroup | ReplaceStaticMember
"""What a write under way is for; ``GroupShard.settled`` acts on its outcome."""


@dataclass(slots=True)
class ShardState:
    """State of one partition of ``__consumer_offsets``."""

    config: GroupConfig
    new_uuid: Callable[[], str]
    writes: Writes[GroupWrite]
    stored: StoredState = field(default_factory=StoredState)
    timers: Timers = field(default_factory=Timers)

    @property
    def groups(self) -> dict[str, Group]:
        return self.stored.groups
