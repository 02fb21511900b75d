"""Topics that come and go: created, written, read, grown, deleted, and made again under the same name."""

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches
from ottla.records.builder import build_batch
from ottla.records.record import Record, read_records
from ottla.sim.admin import Admin
from ottla.sim.history import Violation
from ottla.sim.network import Network
from ottla.sim.plan import Shape, TopicKind, TopicShape
from ottla.sim.scripts import Ask, Script, Wait, play
from ottla.sim.world import SECOND, WALL_START_MS, World
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PREFIX = "churn-"
FETCH_VERSION = 13
PRODUCE_VERSION = 9
TRIES = 8
ROUND_US = 4 * SECOND
LIFE_US = (SECOND, 8 * SECOND)
"""How long some live on, so that sessions end and brokers come back in the meantime."""


class Churn(Admin):
    """One topic's life after the other; a later life must never show an earlier one's records."""

    def __init__(
        self, world: World, network: Network, addresses: dict[int, tuple[str, int]], shape: Shape
    ) -> None:
        super().__init__(world, network, "churner", addresses)
        self.shape = shape
        self.lives = 0
        self.is_done = False

    def start(self) -> None:
        play(self, self._live())

    def _live(self) -> Script:
        while not self.is_stopped:
            self.lives += 1
            name = f"{PREFIX}{self.lives % 2}"
            topic = TopicShape(name, TopicKind.PLAIN, self.world.between(1, 2))
            topic_id = yield from self.create_topic(topic, self.shape)
            if topic_id is not None:
                self.forget(name)
                yield from self._write(TopicPartition(name, 0))
                yield from self._read(TopicPartition(name, 0), topic_id)
            if self.world.happens(0.3):
                yield from self.grow(name, 3)
            if self.world.happens(0.4) and not self.is_stopped:
                yield Wait(self.world.between(*LIFE_US))
            yield from self.delete_topic(name)
            yield Wait(self.backoff_us(ROUND_US))
        for name in (f"{PREFIX}0", f"{PREFIX}1"):
            yield from self.delete_topic(name)
        self.is_done = True

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
                response = yield Ask(leader.broker, request, PRODUCE_VERSION, ProduceResponse)
                row = response.responses[0].partition_responses[0] if response is not None else None
                if row is not None and row.error_code == ErrorCode.NONE:
                    return
            yield Wait(self.backoff_us())

    def _read(self, partition: TopicPartition, topic_id: bytes) -> Script:
        """Ask by the id of this life: what another life wrote must not come."""
        wanted = FetchPartition(partition=partition.partition, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])]
        )
        leader = self.leaders.get(partition)
        if leader is None:
            return
        response = yield Ask(leader.broker, request, FETCH_VERSION, FetchResponse)
        rows = [row for topic in response.responses for row in topic.partitions] if response else []
        for row in rows:
            view = memoryview(bytes(row.records or b""))
            for header in batches(view):
                for record in read_records(view, header):
                    if record.value != self._value():
                        raise Violation(
                            f"back from the dead: {partition} of {self._value()!r} holds {record.value!r}"
                        )
