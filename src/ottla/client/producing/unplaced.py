"""Records whose topic or partition is not known yet: they wait for metadata, in their order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import TopicInfo
from ottla.client.errors import BrokerError, ClientError, LoginFailed, NoSuchPartition, TimedOut
from ottla.client.producing.batches import Delivery
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

Place: TypeAlias = str | TopicPartition
"""What records wait for: a topic, or one partition of a known topic."""

NEW_PARTITION_MS_MAX = 5_000
"""How long a record waits for a partition that the metadata do not name: it may be new."""


@dataclass(slots=True, eq=False)
class UnplacedRecord:
    """One such record, and when it gives up."""

    record: Record
    delivery: Delivery
    partition: int | None
    size: int
    deadline_ms: int = 0


class UnplacedRecords:
    """All such records of a producer, by what they wait for."""

    __slots__ = ("_engine", "_max_block_ms", "at")

    def __init__(self, engine: Engine, max_block_ms: int) -> None:
        self._engine = engine
        self._max_block_ms = max_block_ms
        self.at: dict[Place, list[UnplacedRecord]] = {}
        """Checked for every new record: later records must not overtake."""

    def __iter__(self) -> Iterator[UnplacedRecord]:
        return (unplaced for records in self.at.values() for unplaced in records)

    def clear(self) -> None:
        """Drop all records."""
        self.at.clear()

    def wait_for_topic(self, topic: str, unplaced: UnplacedRecord) -> None:
        """Let a record wait until its topic is known."""
        self._wait(topic, topic, unplaced, self._max_block_ms)

    def wait_for_partition(self, name: TopicPartition, unplaced: UnplacedRecord) -> None:
        """Let a record wait until the topic has this partition."""
        limit_ms = min(NEW_PARTITION_MS_MAX, self._max_block_ms) if name.partition >= 0 else 0
        self._wait(name, name.topic, unplaced, limit_ms)

    def _wait(self, place: Place, topic: str, unplaced: UnplacedRecord, limit_ms: int) -> None:
        unplaced.deadline_ms = self._engine.now_ms + limit_ms
        self.at.setdefault(place, []).append(unplaced)
        self._engine.want_topics(topic)

    def next_deadlines(self) -> list[int]:
        """The deadline of the first record of each place."""
        return [records[0].deadline_ms for records in self.at.values()]

    def decided(self) -> Iterator[tuple[UnplacedRecord, TopicInfo | ClientError]]:
        """Records that can be placed, with their topic, and records that give up, with the error."""
        for place in list(self.at):
            topic, number = (place, None) if isinstance(place, str) else place
            info = self._engine.metadata.topics.get(topic)
            is_topic_known = info is not None and not info.error_code and bool(info.partitions)
            if info is not None and is_topic_known and (number is None or number in info.partitions):
                for unplaced in self.at.pop(place):
                    yield unplaced, info
                continue
            late: ClientError
            cause: ClientError | None = None
            if isinstance(self._engine.metadata_error, LoginFailed):
                cause = self._engine.metadata_error
            elif info is not None and info.error_code:
                cause = BrokerError(info.error_code)
            if is_topic_known and info is not None:
                late = NoSuchPartition(f"{topic} has no partition {number}, it has {len(info.partitions)}")
            else:
                why = cause or self._engine.metadata_error
                late = TimedOut(f"metadata of topic {topic}", self._max_block_ms, why)
            final = cause if cause is not None and not cause.is_retriable else None
            for unplaced in self._take_failed(place, is_final=final is not None):
                yield unplaced, final or late

    def _take_failed(self, place: Place, *, is_final: bool) -> list[UnplacedRecord]:
        """Remove all records of a place if the error is final, else those past their deadline."""
        records, now_ms = self.at[place], self._engine.now_ms
        waiting = [] if is_final else [each for each in records if now_ms < each.deadline_ms]
        if waiting:
            self.at[place] = waiting
            self._engine.refresh_soon()
        else:
            del self.at[place]
        return [each for each in records if is_final or now_ms >= each.deadline_ms]
