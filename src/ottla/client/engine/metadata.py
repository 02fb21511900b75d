"""What the client knows of the cluster: brokers, topics, leaders. Only responses of brokers change it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from ottla.wire.primitives import ZERO_UUID

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Broker:
    """Where a broker listens."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """The leader and the replicas of a partition."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic, or the error that a broker answered for it."""

    name: str
    topic_id: bytes
    error_code: int
    partitions: dict[int, PartitionInfo]
    is_internal: bool = False

    def partitions_with_leader(self) -> list[int]:
        """The partitions that can take records now."""
        return [number for number, partition in self.partitions.items() if partition.leader != NO_LEADER]


class Metadata:
    """The newest known state. A response with an older leader epoch does not replace a leader."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.version = 0
        """How many metadata responses were merged."""

    def topic(self, name: str) -> TopicInfo | None:
        """A known topic without an error."""
        topic = self.topics.get(name)
        return topic if topic is not None and not topic.error_code else None

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic is not None else None

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The leader of a partition, if it and its address are known."""
        info = self.partition(partition)
        return info.leader if info is not None and info.leader in self.brokers else None

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic with an id."""
        for topic in self.topics.values():
            if topic.topic_id == topic_id:
                return topic.name
        return None

    def merge(self, response: MetadataResponse) -> None:
        """Merge a response; topics that it does not name stay as they are."""
        self.brokers = {
            broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.version += 1
        for topic in response.topics:
            if topic.name is not None:
                self.topics[topic.name] = self._topic(topic.name, topic)

    def learn_leader(
        self,
        partition: TopicPartition,
        hint: LeaderIdAndEpoch,
        endpoints: Iterable[NodeEndpoint],
    ) -> bool:
        """Note the leader that a former leader named; whether it is newer and its address is known."""
        known = self.partition(partition)
        if known is None or hint.leader_id < 0 or hint.leader_epoch <= known.leader_epoch:
            return False
        for node in endpoints:
            self.brokers.setdefault(node.node_id, Broker(node.node_id, node.host, node.port, node.rack))
        partitions = self.topics[partition.topic].partitions
        partitions[partition.partition] = PartitionInfo(
            hint.leader_id, hint.leader_epoch, known.replicas, known.isr
        )
        return hint.leader_id in self.brokers

    def forget_leader(self, partition: TopicPartition, leader: int) -> None:
        """A broker said that it does not lead the partition: it has no leader until the next response."""
        known = self.partition(partition)
        if known is not None and known.leader == leader:
            self.topics[partition.topic].partitions[partition.partition] = PartitionInfo(
                NO_LEADER, known.leader_epoch, known.replicas, known.isr, known.offline_replicas
            )

    def _topic(self, name: str, row: MetadataResponseTopic) -> TopicInfo:
        old = self.topics.get(name)
        is_same = old is not None and (row.topic_id in (ZERO_UUID, old.topic_id))
        before = old.partitions if old is not None and is_same else {}
        partitions = {p.partition_index: _newer(before.get(p.partition_index), p) for p in row.partitions}
        return TopicInfo(name, row.topic_id, row.error_code, partitions, row.is_internal)


def _newer(known: PartitionInfo | None, row: MetadataResponsePartition) -> PartitionInfo:
    """A partition as a broker describes it, unless a later leader epoch is known."""
    if known is not None and 0 <= row.leader_epoch < known.leader_epoch:
        return known
    leader = (
        row.leader_id if row.error_code in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE) else NO_LEADER
    )
    return PartitionInfo(leader, row.leader_epoch, row.replica_nodes, row.isr_nodes, row.offline_replicas)
