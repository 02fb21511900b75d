"""What happened: everything the controller acts on. Events carry the facts; the controller reads nothing.

The host has read ZooKeeper again before it hands an event over, because a watch is only a hint. An event is
either news, which begins a turn, or the outcome of an effect of the running turn.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from ottla.config.areas import TopicsConfig
from ottla.config.log import LogConfig
from ottla.controller.placement import PlacedRow, PlacementRule
from ottla.model.cluster import BrokerRegistration
from ottla.model.errors import Refusal
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment

Token: TypeAlias = int
"""By which the host knows the caller that waits for an answer."""


class TopicFound(Struct, frozen=True):
    """A topic's znode as read. ``id_is_new``: it had no topic id, the host drew one, it must be written."""

    topic_id: TopicId
    partitions: Mapping[int, ReplicaAssignment]
    id_is_new: bool = False


class TookOffice(Struct, frozen=True):
    """This broker won the election and has read the whole cluster, its watches set first."""

    brokers: tuple[BrokerRegistration, ...]
    topics: Mapping[str, TopicFound]
    states: Mapping[TopicPartition, LeaderAndIsr]
    deletions: tuple[str, ...] = ()
    reassignments: Mapping[TopicPartition, tuple[BrokerId, ...]] | None = None
    preferred_elections: tuple[TopicPartition, ...] | None = None
    cause: str = "took office"


class BrokersChanged(Struct, frozen=True):
    """The children of ``/brokers/ids`` with their data, all of them."""

    brokers: tuple[BrokerRegistration, ...]
    cause: str = "brokers changed"


class TopicsChanged(Struct, frozen=True):
    """The children of ``/brokers/topics``, and the data of those the controller did not know.

    ``states`` are partition states that stand there already, left by a controller that died meanwhile.
    """

    names: frozenset[str]
    found: Mapping[str, TopicFound]
    states: Mapping[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    cause: str = "topics changed"


class TopicChanged(Struct, frozen=True):
    """The data of one known topic's znode."""

    topic: str
    found: TopicFound
    cause: str = "topic changed"


class DeletionsRequested(Struct, frozen=True):
    """The children of ``/admin/delete_topics``."""

    topics: tuple[str, ...]
    cause: str = "deletion requested"


class ReassignmentsWritten(Struct, frozen=True):
    """The content of ``/admin/reassign_partitions``, the old tool's way."""

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    cause: str = "/admin/reassign_partitions"


class PreferredElectionWritten(Struct, frozen=True):
    """The content of ``/admin/preferred_replica_election``, the old tool's way."""

    partitions: tuple[TopicPartition, ...]
    cause: str = "/admin/preferred_replica_election"


class IsrNotified(Struct, frozen=True):
    """Brokers before 2.7 wrote partition states themselves; the states are read again."""

    notifications: tuple[str, ...]
    states: Mapping[TopicPartition, LeaderAndIsr]
    cause: str = "ISR change notification"


class LogDirsFailed(Struct, frozen=True):
    """Brokers say that one of their log directories failed."""

    notifications: tuple[str, ...]
    brokers: frozenset[BrokerId]
    cause: str = "log directory failed"


class ReplicasReported(Struct, frozen=True):
    """What a broker's answer to LeaderAndIsr says of its log directories."""

    broker: BrokerId
    broker_epoch: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...] = ()
    cause: str = "log directory failed"


class ReplicasDeleted(Struct, frozen=True):
    """A broker's answer to StopReplica with deletion: which logs are gone, which are not."""

    broker: BrokerId
    broker_epoch: int
    deleted: tuple[TopicPartition, ...]
    refused: tuple[TopicPartition, ...] = ()
    cause: str = "replicas deleted"


class UncleanElectionEnabled(Struct, frozen=True):
    """A topic's configuration allows unclean election now, or (None) the brokers' default does."""

    topic: str | None
    cause: str = "unclean election enabled"


class RebalanceDue(Struct, frozen=True):
    """``leader.imbalance.check.interval.seconds`` have passed."""

    imbalance_per_broker_percentage: int = 10
    cause: str = "leader imbalance"


class TopicWanted(NamedTuple):
    """One topic of a CreateTopics request; -1 stands for the default. The host has drawn the lots."""

    name: str
    partitions: int
    replication_factor: int
    by_hand: tuple[PlacedRow, ...]
    settings: tuple[tuple[str, str | None], ...]
    topic_id: TopicId
    start: int
    shift: int


class TopicCreationRequested(Struct, frozen=True):
    """A CreateTopics request, and what holds where it says nothing."""

    token: Token
    topics: tuple[TopicWanted, ...]
    validate_only: bool
    defaults: TopicsConfig
    log: LogConfig
    placement: PlacementRule
    cause: str = "CreateTopics"


class PartitionsWanted(NamedTuple):
    """One topic of a CreatePartitions request: how many there shall be, and where the new ones shall lie."""

    name: str
    partitions: int
    by_hand: tuple[tuple[BrokerId, ...], ...] | None


class PartitionsRequested(Struct, frozen=True):
    """A CreatePartitions request."""

    token: Token
    topics: tuple[PartitionsWanted, ...]
    validate_only: bool
    placement: PlacementRule
    cause: str = "CreatePartitions"


class ElectionType(IntEnum):
    """What ElectLeaders asks for, by its numbers."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeadersRequested(Struct, frozen=True):
    """An ElectLeaders request; no partitions means all of them."""

    token: Token
    election: ElectionType
    partitions: tuple[TopicPartition, ...] | None
    cause: str = "ElectLeaders"


class ReassignmentRequested(Struct, frozen=True):
    """An AlterPartitionReassignments request; None cancels."""

    token: Token
    targets: Mapping[TopicPartition, tuple[BrokerId, ...] | None]
    cause: str = "AlterPartitionReassignments"


class ReassignmentsListed(Struct, frozen=True):
    """A ListPartitionReassignments request; None means all that are under way."""

    token: Token
    partitions: tuple[TopicPartition, ...] | None
    cause: str = "ListPartitionReassignments"


class ControlledShutdownRequested(Struct, frozen=True):
    """A broker wants to leave; epoch -1 (older brokers) is not checked."""

    token: Token
    broker: BrokerId
    broker_epoch: int
    cause: str = "controlled shutdown"


class IsrChange(NamedTuple):
    """One partition of an AlterPartition request; the epoch of a member is -1 where it is unknown."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    member_epochs: tuple[int, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class AlterPartitionRequested(Struct, frozen=True):
    """A leader asks for other ISRs. Its broker epoch has to be the present one."""

    token: Token
    broker: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]
    cause: str = "AlterPartition"


class StatesWritten(Struct, frozen=True):
    """How ``WriteStates`` went: the conflicts with what stands there now (None: nothing readable)."""

    conflicts: Mapping[TopicPartition, LeaderAndIsr | None] = field(default_factory=dict)


class TopicsWritten(Struct, frozen=True):
    """How ``WriteTopics`` or ``WriteNewTopics`` went: which have no znode any more, which were refused."""

    missing: frozenset[str] = frozenset()
    refused: Mapping[str, Refusal] = field(default_factory=dict)


class TopicsRemoved(Struct, frozen=True):
    """How ``RemoveTopics`` went: they are gone, all of them."""


class UncleanTopicsRead(Struct, frozen=True):
    """Which of the asked topics allow unclean election: the topic's own setting, else the broker's."""

    allowed: frozenset[str]


class TopicsRead(Struct, frozen=True):
    """The children of ``/brokers/topics`` and ``/admin/delete_topics``; topics asked for that stand there."""

    standing: frozenset[str]
    marked: frozenset[str]
    found: Mapping[str, TopicFound | Refusal] = field(default_factory=dict)


class Breathed(Struct, frozen=True):
    """Others had their turn."""


Outcome: TypeAlias = StatesWritten | TopicsWritten | TopicsRemoved | UncleanTopicsRead | TopicsRead | Breathed
"""How an effect of the running turn went."""

News: TypeAlias = (
    TookOffice
    | BrokersChanged
    | TopicsChanged
    | TopicChanged
    | DeletionsRequested
    | ReassignmentsWritten
    | PreferredElectionWritten
    | IsrNotified
    | LogDirsFailed
    | ReplicasReported
    | ReplicasDeleted
    | UncleanElectionEnabled
    | RebalanceDue
    | TopicCreationRequested
    | PartitionsRequested
    | ElectLeadersRequested
    | ReassignmentRequested
    | ReassignmentsListed
    | ControlledShutdownRequested
    | AlterPartitionRequested
)
"""What begins a turn."""

Event: TypeAlias = News | Outcome
