"""Transactional producers over bare sockets: what they measure is brokers and not clients.

All producers run in this process, each with a connection of its own to every broker it needs. When a
coordinator answers CONCURRENT_TRANSACTIONS they ask again after 20 ms, as Java's client and librdkafka do.
"""

import heapq
import itertools
import selectors
import struct
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from _sides import Side

from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.records.batch import seal
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis import message_classes
from ottla.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.apis.end_txn import EndTxnRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.headers import decode_response, frame_request
from ottla.wire.keys import ApiKey
from support.wire.client import WireClient

SECONDS_MAX = 120.0
BACK_OFF_S = 0.02
RECORD_BYTES = 100
BASE_SEQUENCE_AT = 53
INIT_VERSION, ADD_VERSION, END_VERSION, PRODUCE_VERSION = 4, 3, 3, 9
AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
"""A coordinator that was made a moment ago may not have heard of it yet."""

TRANSACTION = 1

Asked = tuple[str, Any, int]
"""An address, a request, its version."""

Talk = Generator[list[Asked] | float, list[Any], None]
"""Yields requests to send at once, and gets their answers; or the seconds of a pause."""


def coordinators(side: Side) -> dict[int, str]:
    """The leaders of ``__transaction_state``, which is made if need be."""
    deadline = time.monotonic() + SECONDS_MAX
    with WireClient(side.brokers[0].address) as client:
        while client.ask(FindCoordinatorRequest(key="bench", key_type=TRANSACTION), 3).error_code:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{side.name} has no transaction coordinator")
            time.sleep(0.05)
    return side.leaders(TRANSACTIONS_TOPIC)


def coordinator_of(leaders: dict[int, str], transactional_id: str) -> str:
    return leaders[coordinating_partition(transactional_id, len(leaders))]


@dataclass
class Measured:
    """What transactions cost their producers."""

    transactions: int = 0
    commit_ms: list[float] = field(default_factory=list)
    """EndTxn until its answer."""
    next_ms: list[float] = field(default_factory=list)
    """The answer to EndTxn until the next AddPartitionsToTxn was accepted."""
    adding: Counter[bool] = field(default_factory=Counter)
    """AddPartitionsToTxn by whether it was refused with CONCURRENT_TRANSACTIONS."""


class Transactor:
    """One producer: transactions of some records a partition, one after another."""

    def __init__(
        self, name: str, coordinator: str, topic: str, leaders: dict[int, str], records: int
    ) -> None:
        self.name = name
        self.coordinator = coordinator
        self.topic = topic
        self.records = records
        self.sequence = 0
        self.producer = (-1, -1)
        self._by_leader: dict[str, list[int]] = {}
        for partition, address in leaders.items():
            self._by_leader.setdefault(address, []).append(partition)
        self._batch = bytearray()

    def initialised(self) -> Talk:
        """The producer gets its id and epoch."""
        asked = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        while True:
            (answer,) = yield [(self.coordinator, asked, INIT_VERSION)]
            if answer.error_code == 0:
                break
            assert answer.error_code in AGAIN, answer
            yield BACK_OFF_S
        self.producer = (answer.producer_id, answer.producer_epoch)
        records = [Record(None, bytes(RECORD_BYTES), timestamp=1_700_000_000_000)] * self.records
        self._batch = build_batch(
            records,
            producer_id=answer.producer_id,
            producer_epoch=answer.producer_epoch,
            is_transactional=True,
        )

    def transacting(self, until: float, measured: Measured) -> Talk:
        """Transactions as fast as they are answered, until that time by the clock."""
        ended_at: float | None = None
        while time.perf_counter() < until:
            yield from self._add(measured)
            if ended_at is not None:
                measured.next_ms.append((time.perf_counter() - ended_at) * 1000)
            yield from self._produce()
            began = time.perf_counter()
            (answer,) = yield [(self.coordinator, self._an_end(), END_VERSION)]
            assert answer.error_code == 0, answer
            ended_at = time.perf_counter()
            measured.commit_ms.append((ended_at - began) * 1000)
            measured.transactions += 1

    def _an_end(self) -> EndTxnRequest:
        producer_id, epoch = self.producer
        return EndTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, committed=True
        )

    def _add(self, measured: Measured) -> Talk:
        partitions = tuple(itertools.chain.from_iterable(self._by_leader.values()))
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=partitions)],
        )
        while True:
            (answer,) = yield [(self.coordinator, asked, ADD_VERSION)]
            rows = [row for each in answer.results_by_topic_v3_and_below for row in each.results_by_partition]
            codes = {row.partition_error_code for row in rows}
            measured.adding[codes == {ErrorCode.CONCURRENT_TRANSACTIONS}] += 1
            if codes == {0}:
                return
            assert codes == {ErrorCode.CONCURRENT_TRANSACTIONS}, codes
            yield BACK_OFF_S

    def _produce(self) -> Talk:
        """One request to each leader, with a batch for each of its partitions; all have the same numbers."""
        struct.pack_into(">i", self._batch, BASE_SEQUENCE_AT, self.sequence)
        seal(self._batch, 0, len(self._batch))
        self.sequence += self.records
        asked: list[Asked] = []
        for address, partitions in self._by_leader.items():
            rows = [PartitionProduceData(index=each, records=self._batch) for each in partitions]
            topics = [TopicProduceData(name=self.topic, partition_data=rows)]
            request = ProduceRequest(
                transactional_id=self.name, acks=-1, timeout_ms=30_000, topic_data=topics
            )
            asked.append((address, request, PRODUCE_VERSION))
        answers = yield asked
        codes = {
            row.error_code for each in answers for of in each.responses for row in of.partition_responses
        }
        assert codes == {0}, codes


class _Running:
    """One talk, its connections, and what it waits for."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.links: dict[str, WireClient] = {}
        self.awaited: dict[str, tuple[int, Any, int]] = {}
        """By address: the place of the answer, the request, its version."""
        self.answers: list[Any] = []


def run_all(talks: list[Talk]) -> None:
    """Every talk to its end, all at once in one thread."""
    with _a_stage() as stage:
        for talk in talks:
            stage.begin(talk)
        stage.run()


@contextmanager
def _a_stage() -> Iterator["_Stage"]:
    stage = _Stage()
    try:
        yield stage
    finally:
        stage.close()


class _Stage:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._pauses: list[tuple[float, int, _Running]] = []
        self._numbers = itertools.count()
        self._open = 0
        self._links: list[WireClient] = []

    def begin(self, talk: Talk) -> None:
        """One talk more."""
        self._open += 1
        self._resume(_Running(talk), None)

    def _resume(self, running: _Running, answers: list[Any] | None) -> None:
        """Let a talk go on, until it waits again."""
        try:
            wish = running.talk.send(answers)  # type: ignore[arg-type]
        except StopIteration:
            self._open -= 1
            return
        if isinstance(wish, float):
            due = time.perf_counter() + wish
            heapq.heappush(self._pauses, (due, next(self._numbers), running))
            return
        running.answers = [None] * len(wish)
        for place, (address, message, version) in enumerate(wish):
            running.awaited[address] = (place, message, version)
            frame = b"".join(frame_request(message, version, 1, "bench"))
            self._link(running, address).send_bytes(frame)

    def _link(self, running: _Running, address: str) -> WireClient:
        link = running.links.get(address)
        if link is None:
            link = running.links[address] = WireClient(address, SECONDS_MAX)
            self._links.append(link)
            self._selector.register(link.socket, selectors.EVENT_READ, (running, address))
        return link

    def run(self) -> None:
        """Until every talk has ended."""
        while self._open:
            left = self._pauses[0][0] - time.perf_counter() if self._pauses else SECONDS_MAX
            ready = self._selector.select(max(0.0, left))
            for key, _ in ready:
                self._hear(*key.data)
            while self._pauses and self._pauses[0][0] <= time.perf_counter():
                self._resume(heapq.heappop(self._pauses)[2], None)
            if not ready and left == SECONDS_MAX:
                raise TimeoutError("no broker answers")

    def _hear(self, running: _Running, address: str) -> None:
        place, message, version = running.awaited.pop(address)
        response = message_classes(ApiKey(message.spec.api_key))[1]
        frame = running.links[address].read_frame()
        assert frame is not None, f"{address} hung up"
        running.answers[place] = decode_response(response, version, frame)[1]
        if not running.awaited:
            self._resume(running, running.answers)

    def close(self) -> None:
        self._selector.close()
        for link in self._links:
            link.close()
