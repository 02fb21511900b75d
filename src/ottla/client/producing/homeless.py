"""Records whose topic, or whose partition of it, is not known yet: they wait for metadata, in their order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import TopicInfo
from ottla.client.errors import BrokerError, ClientError, NoSuchPartition, TimedOut
from ottla.client.producing.batches import Delivery
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

Place: TypeAlias = str | TopicPartition
"""What is waited for: a topic, or one partition of a topic that is known."""

NEW_PARTITION_MS_MAX = 5_000
"""How long a record waits for a partition that nobody has told us of: it may have been added just now."""


@dataclass(slots=True, eq=False)
class Homeless:
    """One such record, and how long it waits."""

    record: Record
    delivery: Delivery
    partition: int | None
    size: int
    deadline_ms: int = 0


class HomelessRecords:
    """All such records of a producer, by what they wait for."""

    __slots__ = ("_engine", "_max_block_ms", "at")

    def __init__(self, engine: Engine, max_block_ms: int) -> None:
        self._engine = engine
        self._max_block_ms = max_block_ms
        self.at: dict[Place, list[Homeless]] = {}
        """Looked into for every record that is sent: what comes later must not overtake."""

    def __iter__(self) -> Iterator[Homeless]:
        return (homeless for records in self.at.values() for homeless in records)

    def clear(self) -> None:
        """Nobody waits any more."""
        self.at.clear()

    def wait_for_topic(self, topic: str, homeless: Homeless) -> None:
        """It can be placed when the topic is known."""
        self._wait(topic, topic, homeless, self._max_block_ms)

    def wait_for_partition(self, name: TopicPartition, homeless: Homeless) -> None:
        """It can be placed when the topic has this partition."""
        limit_ms = min(NEW_PARTITION_MS_MAX, self._max_block_ms) if name.partition >= 0 else 0
        self._wait(name, name.topic, homeless, limit_ms)

    def _wait(self, place: Place, topic: str, homeless: Homeless, limit_ms: int) -> None:
        homeless.deadline_ms = self._engine.now_ms + limit_ms
        self.at.setdefault(place, []).append(homeless)
        self._engine.want_topics(topic)

    def next_deadlines(self) -> list[int]:
        """When the first of each place gives up."""
        return [records[0].deadline_ms for records in self.at.values()]

    def decided(self) -> Iterator[tuple[Homeless, TopicInfo | ClientError]]:
        """Those that have a home by now, with their topic, and those that give up, with the reason."""
        for place in list(self.at):
            topic, number = (place, None) if isinstance(place, str) else place
            info = self._engine.metadata.topics.get(topic)
            is_topic_known = info is not None and not info.error_code and bool(info.partitions)
            if info is not None and is_topic_known and (number is None or number in info.partitions):
                for homeless in self.at.pop(place):
                    yield homeless, info
                continue
            late: ClientError
            cause = BrokerError(info.error_code) if info is not None and info.error_code else None
            if is_topic_known and info is not None:
                late = NoSuchPartition(f"{topic} has no partition {number}, it has {len(info.partitions)}")
            else:
                why = cause or self._engine.metadata_error
                late = TimedOut(f"metadata of topic {topic}", self._max_block_ms, why)
            final = cause if cause is not None and not cause.is_retriable else None
            for homeless in self._take_hopeless(place, is_final=final is not None):
                yield homeless, final or late

    def _take_hopeless(self, place: Place, *, is_final: bool) -> list[Homeless]:
        """All of a place, if nothing can change any more; else those whose time is up."""
        records, now_ms = self.at[place], self._engine.now_ms
        hopeful = [] if is_final else [each for each in records if now_ms < each.deadline_ms]
        if hopeful:
            self.at[place] = hopeful
            self._engine.refresh_soon()
        else:
            del self.at[place]
        return [each for each in records if is_final or now_ms >= each.deadline_ms]
