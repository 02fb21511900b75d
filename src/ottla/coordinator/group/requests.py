"""Requests that change a group, with what their version implies spelt out."""

from dataclasses import dataclass

from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup request."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    must_know_its_id: bool
    may_skip_assignment: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """An OffsetCommit or TxnOffsetCommit request. ``refused`` are partitions that do not exist."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int
    offsets: dict[TopicPartition, CommittedOffset]
    refused: dict[TopicPartition, ErrorCode]
    producer: Producer | None = None
    """Set when the offsets are part of a transaction."""
    verification: int | None = None
    """The token of the check that came before, if there was one."""
