"""What happened: everything the controller acts on. Events carry the facts; the controller reads nothing.

The host has read ZooKeeper again before it hands an event over, because a watch is only a hint. An event is
either news, which begins a turn, or the outcome of an order of the running turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment

Token: TypeAlias = int
"""By which the host knows the caller that waits for an answer."""


@dataclass(frozen=True, slots=True)
class TopicFound:
    """A topic's znode as read. ``id_is_new``: it had no topic id, the host drew one, it must be written."""

    topic_id: TopicId
    partitions: Mapping[int, ReplicaAssignment]
    id_is_new: bool = False


@dataclass(frozen=True, slots=True)
class TookOffice:
    """This broker won the election and has read the whole cluster, its watches set first."""

    brokers: tuple[BrokerRegistration, ...]
    topics: Mapping[str, TopicFound]
    states: Mapping[TopicPartition, LeaderAndIsr]
    deletions: tuple[str, ...] = ()
    reassignments: Mapping[TopicPartition, tuple[BrokerId, ...]] | None = None
    preferred_elections: tuple[TopicPartition, ...] | None = None
    cause: str = "took office"


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The children of ``/brokers/ids`` with their data, all of them."""

    brokers: tuple[BrokerRegistration, ...]
    cause: str = "brokers changed"


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The children of ``/brokers/topics``, and the data of those the controller did not know.

    ``states`` are partition states that stand there already, left by a controller that died meanwhile.
    """

    names: frozenset[str]
    found: Mapping[str, TopicFound]
    states: Mapping[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    cause: str = "topics changed"


@dataclass(frozen=True, slots=True)
class TopicChanged:
    """The data of one known topic's znode."""

    topic: str
    found: TopicFound
    cause: str = "topic changed"


@dataclass(frozen=True, slots=True)
class DeletionsRequested:
    """The children of ``/admin/delete_topics``."""

    topics: tuple[str, ...]
    cause: str = "deletion requested"


@dataclass(frozen=True, slots=True)
class ReassignmentsWritten:
    """The content of ``/admin/reassign_partitions``, the old tool's way."""

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    cause: str = "/admin/reassign_partitions"


@dataclass(frozen=True, slots=True)
class PreferredElectionWritten:
    """The content of ``/admin/preferred_replica_election``, the old tool's way."""

    partitions: tuple[TopicPartition, ...]
    cause: str = "/admin/preferred_replica_election"


@dataclass(frozen=True, slots=True)
class IsrNotified:
    """Brokers before 2.7 wrote partition states themselves; the states are read again."""

    notifications: tuple[str, ...]
    states: Mapping[TopicPartition, LeaderAndIsr]
    cause: str = "ISR change notification"


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """Brokers say that one of their log directories failed."""

    notifications: tuple[str, ...]
    brokers: frozenset[BrokerId]
    cause: str = "log directory failed"


@dataclass(frozen=True, slots=True)
class ReplicasReported:
    """What a broker's answer to LeaderAndIsr says of its log directories."""

    broker: BrokerId
    broker_epoch: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...] = ()
    cause: str = "log directory failed"


@dataclass(frozen=True, slots=True)
class ReplicasDeleted:
    """A broker's answer to StopReplica with deletion: which logs are gone, which are not."""

    broker: BrokerId
    broker_epoch: int
    deleted: tuple[TopicPartition, ...]
    refused: tuple[TopicPartition, ...] = ()
    cause: str = "replicas deleted"


@dataclass(frozen=True, slots=True)
class UncleanElectionEnabled:
    """A topic's configuration allows unclean election now, or (None) the brokers' default does."""

    topic: str | None
    cause: str = "unclean election enabled"


@dataclass(frozen=True, slots=True)
class RebalanceDue:
    """``leader.imbalance.check.interval.seconds`` have passed."""

    imbalance_per_broker_percentage: int = 10
    cause: str = "leader imbalance"


class ElectionType(IntEnum):
    """What ElectLeaders asks for, by its numbers."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class ElectLeadersRequested:
    """An ElectLeaders request; no partitions means all of them."""

    token: Token
    election: ElectionType
    partitions: tuple[TopicPartition, ...] | None
    cause: str = "ElectLeaders"


@dataclass(frozen=True, slots=True)
class ReassignmentRequested:
    """An AlterPartitionReassignments request; None cancels."""

    token: Token
    targets: Mapping[TopicPartition, tuple[BrokerId, ...] | None]
    cause: str = "AlterPartitionReassignments"


@dataclass(frozen=True, slots=True)
class ReassignmentsListed:
    """A ListPartitionReassignments request; None means all that are under way."""

    token: Token
    partitions: tuple[TopicPartition, ...] | None
    cause: str = "ListPartitionReassignments"


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
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


@dataclass(frozen=True, slots=True)
class AlterPartitionRequested:
    """A leader asks for other ISRs. Its broker epoch has to be the present one."""

    token: Token
    broker: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]
    cause: str = "AlterPartition"


@dataclass(frozen=True, slots=True)
class StatesWritten:
    """How ``WriteStates`` went: the conflicts with what stands there now (None: nothing readable)."""

    conflicts: Mapping[TopicPartition, LeaderAndIsr | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsWritten:
    """How ``WriteTopics`` went: these topics have no znode any more."""

    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicsRemoved:
    """How ``RemoveTopics`` went: they are gone, all of them."""


@dataclass(frozen=True, slots=True)
class UncleanTopicsRead:
    """Which of the asked topics allow unclean election: the topic's own setting, else the broker's."""

    allowed: frozenset[str]


Outcome: TypeAlias = StatesWritten | TopicsWritten | TopicsRemoved | UncleanTopicsRead
"""How an order of the running turn went."""

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
    | ElectLeadersRequested
    | ReassignmentRequested
    | ReassignmentsListed
    | ControlledShutdownRequested
    | AlterPartitionRequested
)
"""What begins a turn."""

Event: TypeAlias = News | Outcome
