"""A cluster at one moment: brokers, topics, partitions. Facts only; other modules say what they mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.ids import TopicPartition
from ottla.wire.primitives import ZERO_UUID


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A broker that is alive."""

    number: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class PartitionSeen(NamedTuple):
    """One partition; a tuple because there are thousands."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = -1

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def replication_factor(self) -> int:
        """Replicas that are only being added do not count."""
        return len(self.replicas) - len(self.adding)


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic's settings that decide about its partitions, and those that somebody set."""

    name: str
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    min_isr: int = 1
    is_unclean_allowed: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """How a partition stands at this moment, with all that an election would look at."""

    name: str
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    live: frozenset[int]
    min_isr: int = 1
    is_unclean_allowed: bool = False

    @property
    def has_leader(self) -> bool:
        return self.leader in self.live


@dataclass(frozen=True, slots=True)
class Picture:
    """All that was seen in one look."""

    cluster_id: str = "?"
    controller: int = -1
    controller_epoch: int | None = None
    """Clients are not told it: known from ZooKeeper, or from the last decision."""
    brokers: Mapping[int, BrokerSeen] = field(default_factory=dict)
    topics: Mapping[str, TopicSeen] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionSeen] = field(default_factory=dict)

    @property
    def live(self) -> frozenset[int]:
        return frozenset(self.brokers)

    def now(self, name: TopicPartition) -> PartitionNow | None:
        """One partition, or ``None`` if there is none of the name."""
        seen = self.partitions.get(name)
        if seen is None:
            return None
        topic = self.topics.get(name.topic) or TopicSeen(name.topic)
        return PartitionNow(
            str(name),
            seen.leader,
            seen.leader_epoch,
            seen.replicas,
            seen.isr,
            self.live,
            topic.min_isr,
            topic.is_unclean_allowed,
        )
