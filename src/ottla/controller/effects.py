"""What the controller wants done. Frozen values; the host carries them out in their order.

Every write is fenced: the host puts a check of ``/controller_epoch`` into the same ZooKeeper transaction.
An effect with an outcome (``AwaitedEffect``) ends a step of the turn: the host reports the outcome before it
does anything else.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ottla.controller.election import Rule
from ottla.controller.events import Token
from ottla.model.cluster import BrokerRegistration
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

EPOCH_DURING_DELETE = LeaderEpoch(-2)
"""Sent with StopReplica while a topic is deleted: overrides the leader epoch check (KIP-570)."""


class WriteStates(Struct, frozen=True):
    """Write partition states, each only onto the version before its partition epoch; epoch 0 creates it."""

    states: Mapping[TopicPartition, LeaderAndIsr]
    cause: str


class WriteTopics(Struct, frozen=True):
    """Write whole topic znodes: assignment, topic id, what is added and removed."""

    topics: Mapping[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]]
    cause: str


class NewTopic(Struct, frozen=True):
    """A topic that may be created."""

    topic_id: TopicId
    partitions: Mapping[int, ReplicaAssignment]
    settings: Mapping[str, str]


class WriteNewTopics(Struct, frozen=True):
    """Create topic znodes, each together with its settings; of a topic that stands there nothing changes."""

    topics: Mapping[str, NewTopic]
    cause: str


class RemoveTopics(Struct, frozen=True):
    """Remove topics from ZooKeeper: the topic's tree, its configuration, then its deletion marker."""

    topics: tuple[str, ...]
    cause: str


class ReadUncleanTopics(Struct, frozen=True):
    """Tell which of these topics allow unclean election."""

    topics: frozenset[str]
    cause: str


class ReadTopics(Struct, frozen=True):
    """Tell which topics stand in ZooKeeper, which are marked for deletion, and how those named look."""

    names: tuple[str, ...]
    cause: str


class Breathe(Struct, frozen=True):
    """Let others have their turn: much is left to decide."""


AwaitedEffect: TypeAlias = (
    WriteStates | WriteTopics | WriteNewTopics | RemoveTopics | ReadUncleanTopics | ReadTopics | Breathe
)


class ClearDeletionMarkers(Struct, frozen=True):
    """Remove ``/admin/delete_topics`` entries of topics that are not there, or must not be deleted."""

    topics: tuple[str, ...]
    cause: str


class KeepReassignments(Struct, frozen=True):
    """``/admin/reassign_partitions`` shall hold these; empty removes it."""

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    cause: str


class ClearPreferredElection(Struct, frozen=True):
    """Remove ``/admin/preferred_replica_election``: it is done."""

    cause: str


class NotificationKind(Enum):
    """Which sequential notification nodes."""

    ISR_CHANGE = "isr_change"
    LOG_DIR_EVENT = "log_dir_event"


class ClearNotifications(Struct, frozen=True):
    """Remove notification nodes that were dealt with."""

    kind: NotificationKind
    names: tuple[str, ...]
    cause: str


class Connect(Struct, frozen=True):
    """Open a channel to this broker; an older channel to the same id is closed first."""

    broker: BrokerRegistration
    cause: str


class Disconnect(Struct, frozen=True):
    """The broker is gone: close its channel and forget what was queued."""

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


class SendLeaderAndIsr(Struct, frozen=True):
    """Tell a broker whom its replicas follow, or that they lead."""

    broker: BrokerId
    broker_epoch: int
    entries: tuple[LeaderAndIsrEntry, ...]
    cause: str


class SendUpdateMetadata(Struct, frozen=True):
    """Tell these brokers (with their epochs) the same: partitions that changed, and all live brokers."""

    targets: tuple[tuple[BrokerId, int], ...]
    entries: tuple[MetadataEntry, ...]
    brokers: tuple[BrokerRegistration, ...]
    cause: str


class SendStopReplica(Struct, frozen=True):
    """Tell a broker to stop replicas, and to delete some."""

    broker: BrokerId
    broker_epoch: int
    entries: tuple[StopEntry, ...]
    cause: str


class TopicsCreated(Struct, frozen=True):
    """The answer to CreateTopics, by name: what was written, or would have been."""

    results: Mapping[str, NewTopic | Refusal]


class PartitionsAdded(Struct, frozen=True):
    """The answer to CreatePartitions, by name."""

    results: Mapping[str, Refusal]


class LeadersElected(Struct, frozen=True):
    """The answer to ElectLeaders, by partition."""

    results: Mapping[TopicPartition, Refusal]


class ReassignmentsTaken(Struct, frozen=True):
    """The answer to AlterPartitionReassignments, by partition."""

    results: Mapping[TopicPartition, Refusal]


class ReassignmentsUnderWay(Struct, frozen=True):
    """The answer to ListPartitionReassignments."""

    assignments: Mapping[TopicPartition, ReplicaAssignment]


class ShutdownAnswered(Struct, frozen=True):
    """The answer to ControlledShutdown: what the broker still leads."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


class IsrsAltered(Struct, frozen=True):
    """The answer to AlterPartition, in the order of the request; a state only where it was granted."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode, LeaderAndIsr | None], ...] = ()


Result: TypeAlias = (
    TopicsCreated
    | PartitionsAdded
    | LeadersElected
    | ReassignmentsTaken
    | ReassignmentsUnderWay
    | ShutdownAnswered
    | IsrsAltered
)


class Answer(Struct, frozen=True):
    """Answer the caller who waits under this token."""

    token: Token
    result: Result


class InOffice(Struct, frozen=True):
    """Failover is done: the controller serves, periodic work may begin."""

    cause: str


class Resign(Struct, frozen=True):
    """Give up the office: somebody newer acts, or this controller cannot go on."""

    reason: str


class Refuse(Struct, frozen=True):
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


class Decided(Struct, frozen=True):
    """What was decided in this turn and written; kept for those who ask why."""

    decisions: tuple[Decision, ...]
    controller_epoch: int
    cause: str


Effect: TypeAlias = (
    AwaitedEffect
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
