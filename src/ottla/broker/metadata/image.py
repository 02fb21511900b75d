"""What the controller has told this broker of the cluster: brokers, controller, topics (UpdateMetadata)."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.cluster import Endpoint
from ottla.model.ids import (
    LEADER_DURING_DELETE,
    NO_BROKER,
    NO_LEADER,
    ZERO_TOPIC_ID,
    BrokerId,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)


class PartitionInfo(NamedTuple):
    """One partition as UpdateMetadata told it."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    zk_version: int
    replicas: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...]
    controller_epoch: int


class LiveBroker(NamedTuple):
    """A broker that is registered, with its endpoints by listener name."""

    broker: BrokerId
    endpoints: dict[str, Endpoint]
    rack: str | None


class TopicInfo:
    """One topic; ``encoded`` keeps its bytes for Metadata answers until something of it changes."""

    __slots__ = ("encoded", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionInfo] = {}
        self.encoded: dict[tuple[str, int], bytes] = {}


@dataclass(frozen=True, slots=True)
class PartitionUpdate:
    """News of one partition; a leader of -2 says that its topic is being deleted."""

    partition: TopicPartition
    topic_id: TopicId
    info: PartitionInfo


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """One UpdateMetadata: the brokers and the controller as a whole, the partitions in part."""

    controller: BrokerId
    brokers: dict[BrokerId, LiveBroker]
    partitions: list[PartitionUpdate]


@dataclass(slots=True)
class MetadataChange:
    """What an update changed, for those who wait for it."""

    brokers_changed: bool
    controller_changed: bool
    updated: list[TopicPartition] = field(default_factory=list)
    deleted: list[TopicPartition] = field(default_factory=list)
    deleted_topics: set[str] = field(default_factory=set)
    """Also such as were not known here: they were deleted while this broker was away."""


class MetadataImage:
    """The picture of the cluster that clients are shown. Only UpdateMetadata changes it."""

    __slots__ = ("brokers", "controller", "has_heard_of_topics", "topic_names", "topics")

    def __init__(self) -> None:
        self.controller: BrokerId = NO_BROKER
        self.brokers: dict[BrokerId, LiveBroker] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.has_heard_of_topics = False

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        """What is known of that partition."""
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic is not None else None

    def topic_id(self, topic: str) -> TopicId:
        """The topic's id, zero when it is unknown or has none."""
        info = self.topics.get(topic)
        return info.topic_id if info is not None else ZERO_TOPIC_ID

    def is_led(self, topic: str, partitions: int) -> bool:
        """Whether the topic has so many partitions, and every one a leader."""
        known = self.topics.get(topic)
        if known is None or len(known.partitions) < partitions:
            return False
        return all(info.leader != NO_LEADER for info in known.partitions.values())

    def is_alive(self, broker: BrokerId) -> bool:
        return broker in self.brokers

    def endpoint(self, broker: BrokerId, listener: str) -> Endpoint | None:
        """Where that broker is reached through that listener."""
        live = self.brokers.get(broker)
        return live.endpoints.get(listener) if live is not None else None

    def apply(self, update: MetadataUpdate) -> MetadataChange:
        """Take in an update that passed the fences."""
        brokers_changed = update.brokers != self.brokers
        change = MetadataChange(brokers_changed, update.controller != self.controller)
        self.controller = update.controller
        self.has_heard_of_topics |= bool(update.partitions)
        if brokers_changed:
            self.brokers = update.brokers
            for topic in self.topics.values():
                topic.encoded.clear()
        for news in update.partitions:
            if news.info.leader == LEADER_DURING_DELETE:
                self._forget(news.partition, change)
            else:
                self._remember(news, change)
        return change

    def _remember(self, news: PartitionUpdate, change: MetadataChange) -> None:
        name = news.partition.topic
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = TopicInfo(name, ZERO_TOPIC_ID)
        if topic.topic_id != news.topic_id:
            if ZERO_TOPIC_ID not in (topic.topic_id, news.topic_id):
                topic.partitions.clear()  # the topic was made again; it may have fewer of them now
            self.topic_names.pop(topic.topic_id, None)
            topic.topic_id = news.topic_id
            if news.topic_id != ZERO_TOPIC_ID:
                self.topic_names[news.topic_id] = name
        topic.partitions[news.partition.partition] = news.info
        topic.encoded.clear()
        change.updated.append(news.partition)

    def _forget(self, partition: TopicPartition, change: MetadataChange) -> None:
        topic = self.topics.get(partition.topic)
        if topic is None:
            change.deleted_topics.add(partition.topic)
            return
        if topic.partitions.pop(partition.partition, None) is None:
            return
        topic.encoded.clear()
        change.deleted.append(partition)
        if not topic.partitions:
            del self.topics[partition.topic]
            self.topic_names.pop(topic.topic_id, None)
            change.deleted_topics.add(partition.topic)
