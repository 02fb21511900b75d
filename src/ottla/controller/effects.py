"""What the controller orders. Frozen values; the host carries them out in their order.

Every write is fenced: the host puts a check of ``/controller_epoch`` into the same ZooKeeper transaction.
Orders with an outcome (``Order``) end a step of the turn: the host reports it before it does anything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from ottla.controller.election import Rule
from ottla.controller.events import Token
from ottla.model.cluster import BrokerRegistration
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

EPOCH_DURING_DELETE = LeaderEpoch(-2)
"""Sent with StopReplica while a topic is deleted: overrides the leader epoch check (KIP-570)."""


@dataclass(frozen=True, slots=True)
class WriteStates:
    """Write partition states, each only onto the version before its partition epoch; epoch 0 creates it."""

    states: Mapping[TopicPartition, LeaderAndIsr]
    cause: str


@dataclass(frozen=True, slots=True)
class WriteTopics:
    """Write whole topic znodes: assignment, topic id, what is added and removed."""

    topics: Mapping[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]]
    cause: str


@dataclass(frozen=True, slots=True)
class RemoveTopics:
    """Remove topics from ZooKeeper: the topic's tree, its configuration, then its deletion marker."""

    topics: tuple[str, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class ReadUncleanTopics:
    """Tell which of these topics allow unclean election."""

    topics: frozenset[str]
    cause: str


Order: TypeAlias = WriteStates | WriteTopics | RemoveTopics | ReadUncleanTopics


@dataclass(frozen=True, slots=True)
class ClearDeletionMarkers:
    """Remove ``/admin/delete_topics`` entries of topics that are not there, or must not be deleted."""

    topics: tuple[str, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class KeepReassignments:
    """``/admin/reassign_partitions`` shall hold these; empty removes it."""

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    cause: str


@dataclass(frozen=True, slots=True)
class ClearPreferredElection:
    """Remove ``/admin/preferred_replica_election``: it is done."""

    cause: str


class NotificationKind(Enum):
    """Which sequential notification nodes."""

    ISR_CHANGE = "isr_change"
    LOG_DIR_EVENT = "log_dir_event"


@dataclass(frozen=True, slots=True)
class ClearNotifications:
    """Remove notification nodes that were dealt with."""

    kind: NotificationKind
    names: tuple[str, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Open an ordered line to this broker; an older line to the same id is closed first."""

    broker: BrokerRegistration
    cause: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The broker is gone: close its line and forget what was queued."""

    broker: BrokerId
    cause: str


class LeaderAndIsrEntry(NamedTuple):
    """One partition as its replicas are told; the same object goes to every replica."""

    partition: TopicPartition
    topic_id: TopicId
    state: LeaderAndIsr
    assignment: ReplicaAssignment
    is_new: bool


class MetadataEntry(NamedTuple):
    """One partition as every broker is told; leader -2 removes it from their metadata."""

    partition: TopicPartition
    topic_id: TopicId
    state: LeaderAndIsr
    replicas: tuple[BrokerId, ...]
    offline: tuple[BrokerId, ...]


class StopEntry(NamedTuple):
    """One replica that shall stop; -1 stands for an unknown leader epoch."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    delete: bool


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """Tell a broker whom its replicas follow, or that they lead."""

    broker: BrokerId
    broker_epoch: int
    entries: tuple[LeaderAndIsrEntry, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Tell these brokers (with their epochs) the same: partitions that changed, and all live brokers."""

    targets: tuple[tuple[BrokerId, int], ...]
    entries: tuple[MetadataEntry, ...]
    brokers: tuple[BrokerRegistration, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Tell a broker to stop replicas, and to delete some."""

    broker: BrokerId
    broker_epoch: int
    entries: tuple[StopEntry, ...]
    cause: str


class Refusal(NamedTuple):
    """An error for the caller, in numbers and words."""

    error: ErrorCode
    why: str | None = None


GRANTED = Refusal(ErrorCode.NONE)


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """The answer to ElectLeaders, by partition."""

    results: Mapping[TopicPartition, Refusal]


@dataclass(frozen=True, slots=True)
class ReassignmentsTaken:
    """The answer to AlterPartitionReassignments, by partition."""

    results: Mapping[TopicPartition, Refusal]


@dataclass(frozen=True, slots=True)
class ReassignmentsUnderWay:
    """The answer to ListPartitionReassignments."""

    assignments: Mapping[TopicPartition, ReplicaAssignment]


@dataclass(frozen=True, slots=True)
class ShutdownAnswered:
    """The answer to ControlledShutdown: what the broker still leads."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class IsrsAltered:
    """The answer to AlterPartition, in the order of the request; a state only where it was granted."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode, LeaderAndIsr | None], ...] = ()


Result: TypeAlias = (
    LeadersElected | ReassignmentsTaken | ReassignmentsUnderWay | ShutdownAnswered | IsrsAltered
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the caller who waits under this token."""

    token: Token
    result: Result


@dataclass(frozen=True, slots=True)
class InOffice:
    """Failover is done: the controller serves, periodic work may begin."""

    cause: str


@dataclass(frozen=True, slots=True)
class Resign:
    """Give up the office: somebody newer acts, or this controller cannot go on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """An item of the input was left alone, for the reason that goes to the log."""

    what: str
    why: str


class Decision(NamedTuple):
    """Why a partition's state is what it is: the rule, the candidates, the choice.

    A candidate's state can be told from ``replicas`` (the order of choice), ``before.isr`` and ``online``.
    ``after`` is None where no leader could be found and nothing had to be written.
    """

    partition: TopicPartition
    rule: Rule
    before: LeaderAndIsr | None
    after: LeaderAndIsr | None
    replicas: tuple[BrokerId, ...]
    online: frozenset[BrokerId]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided in this turn and written; kept for those who ask why."""

    decisions: tuple[Decision, ...]
    controller_epoch: int
    cause: str


Effect: TypeAlias = (
    Order
    | ClearDeletionMarkers
    | KeepReassignments
    | ClearPreferredElection
    | ClearNotifications
    | Connect
    | Disconnect
    | SendLeaderAndIsr
    | SendUpdateMetadata
    | SendStopReplica
    | Answer
    | InOffice
    | Resign
    | Refuse
    | Decided
)
