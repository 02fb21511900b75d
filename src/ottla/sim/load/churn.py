"""Topics that come and go: created, written, read, grown, deleted, and made again under the same name."""

from collections.abc import Callable

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition, topic_id_text
from ottla.records.batch import batches
from ottla.records.builder import build_batch
from ottla.records.record import Record, read_records
from ottla.sim.faults.admin import Admin
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.scripts import Script, ask
from ottla.sim.plan import Shape, TopicKind, TopicShape
from ottla.sim.truth.history import Violation
from ottla.sim.world import SECOND, WALL_START_MS
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

PREFIX = "churn-"
NAMES = (f"{PREFIX}0", f"{PREFIX}1")
FETCH_VERSION = 13
PRODUCE_VERSION = 9
TRIES = 8
ROUND_US = 4 * SECOND
LIFE_US = (SECOND, 8 * SECOND)
"""How long some live on, so that sessions end and brokers come back in the meantime."""


class Churn(Admin):
    """One topic's life after the other; a later life must never show an earlier one's records."""

    def __init__(
        self,
        around: Surroundings,
        shape: Shape,
        id_of: Callable[[str], str | None],
    ) -> None:
        super().__init__(around, "churner")
        self.shape = shape
        self.lives = 0
        self.is_done = False
        self._id_of = id_of
        """The id of a topic according to ZooKeeper."""
        self._alive: dict[str, bytes] = {}
        """Topics that were made, and that nobody has been asked to delete."""

    def start(self) -> None:
        self.scripts.play(self._live())

    def _live(self) -> Script:
        while not self.is_stopped:
            self.lives += 1
            name = self.world.chance.choice(NAMES)
            self._check_alive()
            topic = TopicShape(name, TopicKind.PLAIN, self.world.between(1, 2))
            topic_id = yield from self.create_topic(topic, self.shape)
            if topic_id is not None:
                self.forget(name)
                self._alive[name] = topic_id
                yield from self._write(TopicPartition(name, 0))
                yield from self._read(TopicPartition(name, 0), topic_id)
            if self.world.happens(0.3):
                yield from self.grow(name, 3)
            if self.world.happens(0.4) and not self.is_stopped:
                yield self.scripts.wait(self.world.between(*LIFE_US))
            yield from self._end(name)
        self._check_alive()
        yield from self.delete_topics(NAMES)
        self.is_done = True

    def _end(self, name: str) -> Script:
        """Delete this topic or both, wait for that and a while longer, or go on at once; or let it live."""
        self._check_alive()
        yield from self.refreshing([name])
        ids = {each: self._alive.pop(each, None) for each in (NAMES if self.world.happens(0.4) else (name,))}
        ids.setdefault(name, None)
        ids[name] = ids[name] or self.topic_ids.get(name)
        topic_ids = [topic_id for topic_id in ids.values() if topic_id is not None]
        if not topic_ids:
            yield self.scripts.wait(self.backoff_us())
            return
        yield from self.delete_by_id(topic_ids, is_patient=self.world.happens(0.6))
        if self.world.happens(0.6):
            yield self.scripts.wait(self.backoff_us(ROUND_US))

    def _check_alive(self) -> None:
        for name, topic_id in self._alive.items():
            if self._id_of(name) != topic_id_text(TopicId(topic_id)):
                raise Violation(f"vanished: {name} was made, and nobody deleted it")

    def _value(self) -> bytes:
        return f"life {self.lives}".encode()

    def _write(self, partition: TopicPartition) -> Script:
        record = Record(None, self._value(), timestamp=WALL_START_MS + self.world.now_ms)
        data = [PartitionProduceData(index=partition.partition, records=build_batch([record]))]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=3_000,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=data)],
        )
        for _ in range(TRIES):
            yield from self.refreshing([partition.topic])
            leader = self.leaders.get(partition)
            if leader is not None:
                response = yield ask(leader.broker, request, PRODUCE_VERSION)
                row = response.responses[0].partition_responses[0] if response is not None else None
                if row is not None and row.error_code == ErrorCode.NONE:
                    return
            yield self.scripts.wait(self.backoff_us())

    def _read(self, partition: TopicPartition, topic_id: bytes) -> Script:
        """Fetch by topic id: records of a deleted topic of the same name must not come."""
        wanted = FetchPartition(partition=partition.partition, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])]
        )
        leader = self.leaders.get(partition)
        if leader is None:
            return
        response = yield ask(leader.broker, request, FETCH_VERSION)
        rows = [row for topic in response.responses for row in topic.partitions] if response else []
        for row in rows:
            view = memoryview(bytes(row.records or b""))
            for header in batches(view):
                for record in read_records(view, header):
                    if record.value != self._value():
                        raise Violation(
                            f"back from the dead: {partition} of {self._value()!r} holds {record.value!r}"
                        )
