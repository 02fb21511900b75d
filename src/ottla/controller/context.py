"""All that the controller knows: brokers, topics, partitions, and what is under way. Filled at failover."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from ottla.controller.effects import Decided, Decision, Effect
from ottla.controller.events import TopicFound
from ottla.controller.request_batch import RequestBatch
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.partition_states import may_become as partition_may_become
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.replica_states import may_become as replica_may_become
from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment


class Topic:
    """A topic in the controller's memory."""

    __slots__ = ("id", "is_queued_for_deletion", "name", "partitions")

    def __init__(self, name: str, topic_id: TopicId) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: dict[int, Partition] = {}
        self.is_queued_for_deletion = False

    @property
    def assignments(self) -> dict[int, ReplicaAssignment]:
        return {index: partition.assignment for index, partition in self.partitions.items()}


class Partition:
    """A partition in the controller's memory. ``state`` is what ZooKeeper holds, never what is hoped for.

    Replica states stand beside the replicas in a tuple, because most partitions share one and the same.
    """

    __slots__ = ("assignment", "key", "replica_states", "state", "status", "topic")

    def __init__(
        self, topic: Topic, index: int, assignment: ReplicaAssignment, state: LeaderAndIsr | None = None
    ) -> None:
        self.topic = topic
        self.key = TopicPartition(topic.name, index)
        self.assignment = assignment
        self.state = state
        self.status = PartitionState.NEW
        self.replica_states: tuple[ReplicaState, ...] = (ReplicaState.NEW,) * len(assignment.replicas)

    @property
    def leader(self) -> BrokerId | None:
        return None if self.state is None else self.state.leader

    def become(self, status: PartitionState) -> None:
        """Take a step of the partition state machine."""
        assert partition_may_become(self.status, status), (
            f"{self.key} cannot go from {self.status} to {status}"
        )
        self.status = status

    def replica_state(self, broker: BrokerId) -> ReplicaState:
        """The state of its replica on that broker."""
        if broker not in self.assignment.replicas:
            return ReplicaState.NON_EXISTENT
        return self.replica_states[self.assignment.replicas.index(broker)]

    def replicas_in(self, state: ReplicaState) -> list[BrokerId]:
        """The brokers whose replica is in that state."""
        both = zip(self.assignment.replicas, self.replica_states, strict=True)
        return [broker for broker, held in both if held is state]

    def replica_becomes(self, broker: BrokerId, state: ReplicaState) -> None:
        """Take a step of the replica state machine."""
        index = self.assignment.replicas.index(broker)
        states = list(self.replica_states)
        assert replica_may_become(states[index], state), (
            f"replica {broker} of {self.key} cannot go from {states[index]} to {state}"
        )
        states[index] = state
        self.replica_states = tuple(states)

    def reassign(self, assignment: ReplicaAssignment) -> None:
        """Take another assignment; replicas that stay keep their states."""
        self.replica_states = tuple(
            [
                ReplicaState.NEW if state is ReplicaState.NON_EXISTENT else state
                for state in [self.replica_state(broker) for broker in assignment.replicas]
            ]
        )
        self.assignment = assignment


class ControllerContext:
    """One term's knowledge. It is thrown away whole at resignation: nothing outlives a term."""

    def __init__(self, broker: BrokerId, controller_epoch: int) -> None:
        self.broker = broker
        self.controller_epoch = controller_epoch
        self.brokers: dict[BrokerId, BrokerRegistration] = {}
        self.shutting_down: set[BrokerId] = set()
        self.live: frozenset[BrokerId] = frozenset()
        """Registered and not shutting down."""
        self.offline_replicas: dict[BrokerId, set[TopicPartition]] = {}
        """Replicas on failed log directories of brokers that are alive."""
        self.topics: dict[str, Topic] = {}
        self.partitions: dict[TopicPartition, Partition] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.queued_for_deletion: dict[str, None] = {}
        self.ineligible_for_deletion: set[str] = set()
        self.legacy_reassignments: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        """What ``/admin/reassign_partitions`` still holds."""
        self.requests = RequestBatch(self)
        self.outbox: list[Effect] = []
        self._decisions: list[Decision] = []

    def set_brokers(self, brokers: Iterable[BrokerRegistration]) -> None:
        """These are registered now."""
        self.brokers = {broker.broker: broker for broker in sorted(brokers, key=lambda b: b.broker)}
        self.shutting_down &= self.brokers.keys()
        self._recount()

    @property
    def racks(self) -> dict[BrokerId, str | None]:
        """The registered brokers by id, each with its rack."""
        return {broker: registration.rack for broker, registration in self.brokers.items()}

    def mark_shutting_down(self, broker: BrokerId) -> None:
        """The broker serves on, but shall not lead nor join an ISR any more."""
        self.shutting_down.add(broker)
        self._recount()

    def forget_failures(self, broker: BrokerId) -> None:
        """The broker died or began a new life: neither its directories nor its leaving count any more."""
        self.offline_replicas.pop(broker, None)
        self.shutting_down.discard(broker)
        self._recount()

    def _recount(self) -> None:
        self.live = frozenset(self.brokers.keys() - self.shutting_down)

    def is_hosted(self, partition: Partition, broker: BrokerId) -> bool:
        """The broker is registered, perhaps on its way out, and the replica's directory works."""
        return broker in self.brokers and partition.key not in self.offline_replicas.get(broker, ())

    def hosted(self, partition: Partition) -> Collection[BrokerId]:
        """Brokers on which a replica of this partition would be hosted."""
        if not self.offline_replicas:
            return self.brokers
        return [broker for broker in self.brokers if self.is_hosted(partition, broker)]

    def is_online(self, partition: Partition, broker: BrokerId) -> bool:
        """The broker is live and the replica's directory works."""
        return broker in self.live and partition.key not in self.offline_replicas.get(broker, ())

    def online(self, partition: Partition) -> Collection[BrokerId]:
        """Brokers on which a replica of this partition would be online."""
        if not self.offline_replicas:
            return self.live
        key = partition.key
        return {b for b in self.live if key not in self.offline_replicas.get(b, ())}

    def add_topic(self, name: str, found: TopicFound, states: Mapping[TopicPartition, LeaderAndIsr]) -> Topic:
        """A topic that was not known."""
        topic = Topic(name, found.topic_id)
        self.topics[name] = topic
        self.topic_names[found.topic_id] = name
        for index, assignment in found.partitions.items():
            self.add_partition(topic, index, assignment, states.get(TopicPartition(name, index)))
        return topic

    def add_partition(
        self, topic: Topic, index: int, assignment: ReplicaAssignment, state: LeaderAndIsr | None = None
    ) -> Partition:
        """A partition that was not known."""
        partition = Partition(topic, index, assignment, state)
        topic.partitions[index] = partition
        self.partitions[partition.key] = partition
        return partition

    def remove_topic(self, name: str) -> None:
        """The topic is gone from ZooKeeper."""
        topic = self.topics.pop(name, None)
        if topic is None:
            return
        self.topic_names.pop(topic.id, None)
        self.queued_for_deletion.pop(name, None)
        self.ineligible_for_deletion.discard(name)
        for partition in topic.partitions.values():
            self.partitions.pop(partition.key, None)
            for failed in self.offline_replicas.values():
                failed.discard(partition.key)

    def partitions_on(self, broker: BrokerId) -> Iterator[Partition]:
        """Partitions with a replica there; a scan, because an index would cost more than it saves."""
        return (p for p in self.partitions.values() if broker in p.assignment.replicas)

    def is_leader_serving(self, partition: Partition) -> bool:
        """Its leader is registered on a working directory, even when it is about to leave."""
        state = partition.state
        if state is None or state.leader not in self.brokers:
            return False
        return not self.offline_replicas or self.is_hosted(partition, state.leader)

    def record(self, decision: Decision) -> None:
        """Keep the reason of a decision until the turn ends."""
        self._decisions.append(decision)

    def take_decisions(self, cause: str) -> list[Effect]:
        """The turn's decisions as one effect, or nothing."""
        if not self._decisions:
            return []
        decisions, self._decisions = tuple(self._decisions), []
        return [Decided(decisions, self.controller_epoch, cause)]

    def take_outbox(self) -> list[Effect]:
        """The effects since the last call."""
        outbox, self.outbox = self.outbox, []
        return outbox
