"""What the client knows of the cluster: brokers, topics, leaders. It changes only by what brokers say."""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
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
    """Who has a partition."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic, or the error that stands for it."""

    name: str
    topic_id: bytes
    error_code: int
    partitions: dict[int, PartitionInfo]
    is_internal: bool = False

    def partitions_with_leader(self) -> list[int]:
        """The partitions that can take records now."""
        return [number for number, partition in self.partitions.items() if partition.leader != NO_LEADER]


class Metadata:
    """The newest known state. An answer of a broker that lags behind does not turn a leader back."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.version = 0
        """How often a broker has told us all this."""

    def topic(self, name: str) -> TopicInfo | None:
        """A topic that exists, as far as we know."""
        topic = self.topics.get(name)
        return topic if topic is not None and not topic.error_code else None

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic is not None else None

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The broker that leads a partition, if that is known and we know where it listens."""
        info = self.partition(partition)
        return info.leader if info is not None and info.leader in self.brokers else None

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic with an id."""
        for topic in self.topics.values():
            if topic.topic_id == topic_id:
                return topic.name
        return None

    def merge(self, response: MetadataResponse) -> None:
        """Take over what a broker said; topics that it did not speak of stay as they are."""
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
        self, partition: TopicPartition, leader: int, leader_epoch: int, endpoints: Iterable[Broker]
    ) -> bool:
        """A broker that no longer leads named the one that does. Whether that was news."""
        known = self.partition(partition)
        if known is None or leader < 0 or leader_epoch <= known.leader_epoch:
            return False
        for broker in endpoints:
            self.brokers.setdefault(broker.id, broker)
        partitions = self.topics[partition.topic].partitions
        partitions[partition.partition] = PartitionInfo(leader, leader_epoch, known.replicas, known.isr)
        return leader in self.brokers

    def forget_leader(self, partition: TopicPartition, leader: int) -> None:
        """The broker says that it does not lead the partition: until we hear more, nobody does."""
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
    """What a broker says of a partition, unless we have heard of a later leader epoch."""
    if known is not None and 0 <= row.leader_epoch < known.leader_epoch:
        return known
    leader = (
        row.leader_id if row.error_code in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE) else NO_LEADER
    )
    return PartitionInfo(leader, row.leader_epoch, row.replica_nodes, row.isr_nodes, row.offline_replicas)
