"""Producers of the simulated world: idempotent ones that never give up, and careless ones that do."""

from dataclasses import dataclass

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.sim.load.clients import Client, Surroundings
from ottla.sim.truth.history import History, Sent
from ottla.sim.world import MILLISECOND, WALL_START_MS
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PRODUCE_VERSION = 9
INIT_VERSION = 4
PRODUCE_TIMEOUT_MS = 3_000
KEYS = 5
HURRY = 12
"""How much faster producers go while something is happening to the cluster."""

LOOKS_AFTER_BATCHES = 10
"""After so many batches, about, it asks who leads, without need."""

RETRY_US = 200 * MILLISECOND

ACKS_ALL = -1
ACKS_LEADER = 1


@dataclass(slots=True)
class Batch:
    """Values that go out together, under one sequence number."""

    values: list[Sent]
    request: ProduceRequest
    is_sent: bool = False


class _Sender(Client):
    """What both kinds of producer do: make values, and put them into a request."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        partition: TopicPartition,
        history: History,
        pace_us: int,
        *,
        is_keyed: bool = False,
    ) -> None:
        super().__init__(around, name)
        self.partition = partition
        self.history = history
        self.pace_us = pace_us
        self.is_keyed = is_keyed
        self._order = 0
        self._producer_id = -1
        self._epoch = -1

    def _values(self) -> list[Sent]:
        values = []
        for _ in range(self.world.between(1, 6)):
            self._order += 1
            value = f"{self.host}/{self._order}".encode()
            sent = Sent(value, self.host, self._order, self.partition, self._key() if self.is_keyed else None)
            self.history.will_send(sent)
            values.append(sent)
        return values

    def _key(self) -> bytes:
        """Some keys come again and again, others once: compaction must not touch those."""
        name = f"once-{self._order}" if self._order % 4 == 0 else f"again-{self._order % KEYS}"
        return name.encode()

    def _pause_us(self) -> int:
        if self.world.now_us < self.world.busy_until_us:
            return self.backoff_us(self.pace_us // HURRY)
        return self.backoff_us(self.pace_us)

    def _request(self, values: list[Sent], sequence: int, acks: int) -> ProduceRequest:
        now_ms = WALL_START_MS + self.world.now_ms
        records = build_batch(
            [Record(sent.key, sent.value, timestamp=now_ms) for sent in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
        )
        data = [PartitionProduceData(index=self.partition.partition, records=records)]
        return ProduceRequest(
            acks=acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self.partition.topic, partition_data=data)],
        )

    def _acked(self, values: list[Sent], base_offset: int) -> None:
        for index, sent in enumerate(values):
            self.history.acked(sent, base_offset + index if base_offset >= 0 else None)
        self.world.note(b"%d@%d" % (values[-1].order, base_offset))


class Producer(_Sender):
    """Idempotent, acks=all, up to five batches under way, and never gives one up."""

    in_flight_max = 1
    is_idle = False

    def start(self) -> None:
        self._window: list[Batch] = []
        self._sequence = 0
        self._under_way = 0
        self._is_rewinding = False
        self._is_looking = False
        self._is_waiting = False
        # Compaction keeps a producer's last batch alone, in Kafka too: earlier ones cannot be told from new.
        self.in_flight_max = 1 if self.is_keyed else self.world.between(1, 5)
        self._init()

    @property
    def producer_id(self) -> int:
        return self._producer_id

    def is_behind(self, sequence: int) -> bool:
        """Whether the next batch to be answered comes at or before a sequence number."""
        left = sum(len(batch.values) for batch in self._window)
        return bool(self._window) and self._sequence - left <= sequence

    def unanswered(self) -> list[bytes]:
        """The values of the next batch to be answered."""
        return [sent.value for sent in self._window[0].values] if self._window else []

    def _init(self) -> None:
        def heard(response: InitProducerIdResponse | None) -> None:
            if response is None or response.error_code != ErrorCode.NONE:
                self.later(self._init)
                return
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self.history.producer_id_given(response.producer_id, self.host)
            self._add()

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.rpc(self.any_broker()).ask(request, INIT_VERSION, heard)

    def _add(self) -> None:
        if self.is_stopped:
            self.is_idle = not self._window
            if self._window:
                self.later(self._add)
            return
        if self.world.between(1, LOOKS_AFTER_BATCHES) == 1:
            # Like Java's: it sends on to the leader it hears of, whatever the last one still has to answer.
            self.refresh([self.partition.topic], lambda: None)
        if len(self._window) < self.in_flight_max:
            values = self._values()
            self._window.append(Batch(values, self._request(values, self._sequence, ACKS_ALL)))
            self._sequence += len(values)
            self._pump()
        self.world.after(self._pause_us(), self._add)

    def _pump(self) -> None:
        """Send what was not sent; after a failure everything again, in order, once nothing is under way."""
        if self._is_waiting:
            return
        if self._is_rewinding:
            if self._under_way:
                return
            self._is_rewinding = False
            for batch in self._window:
                batch.is_sent = False
        leader = self.leaders.get(self.partition)
        if leader is None:
            self._look()
            return
        for batch in self._window:
            if not batch.is_sent:
                self._send(batch, leader.broker)

    def _look(self) -> None:
        if self._is_looking:
            return
        self._is_looking = True

        def found() -> None:
            self._is_looking = False
            if self.partition in self.leaders:
                self._pump()
            else:
                self._pump_later()

        self.refresh([self.partition.topic], found)

    def _send(self, batch: Batch, broker: int) -> None:
        batch.is_sent = True
        self._under_way += 1

        def heard(response: ProduceResponse | None) -> None:
            self._heard(batch, _row(response))

        self.rpc(broker).ask(batch.request, PRODUCE_VERSION, heard)

    def _heard(self, batch: Batch, row: PartitionProduceResponse | None) -> None:
        self._under_way -= 1
        if row is not None and row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._acked(batch.values, row.base_offset)
            self._window.remove(batch)
            if self._is_rewinding:
                self._pump()
            return
        self._is_rewinding = True
        self.leaders.pop(self.partition, None)
        self._pump_later()

    def _pump_later(self) -> None:
        if self._is_waiting:
            return
        self._is_waiting = True

        def due() -> None:
            self._is_waiting = False
            self._pump()

        self.later(due, RETRY_US)


class CarelessProducer(_Sender):
    """Sends each batch once, without idempotence; what it hears may be that nothing is known."""

    def start(self) -> None:
        self._next()

    def _next(self) -> None:
        if self.is_stopped:
            return
        leader = self.leaders.get(self.partition)
        if leader is None:
            self.refresh([self.partition.topic], lambda: self.later(self._next))
            return
        values = self._values()
        acks = self.world.chance.choice([ACKS_ALL, ACKS_LEADER])

        def heard(response: ProduceResponse | None) -> None:
            self._heard(values, acks, _row(response))
            self.world.after(self._pause_us(), self._next)

        request = self._request(values, -1, acks)
        self.rpc(leader.broker).ask(request, PRODUCE_VERSION, heard)

    def _heard(self, values: list[Sent], acks: int, row: PartitionProduceResponse | None) -> None:
        code = row.error_code if row is not None else ErrorCode.UNKNOWN_SERVER_ERROR
        if code != ErrorCode.NONE:
            self.leaders.pop(self.partition, None)
        if row is not None and code == ErrorCode.NONE and acks == ACKS_ALL:
            self._acked(values, row.base_offset)
        elif code == ErrorCode.NOT_ENOUGH_REPLICAS or (
            code == ErrorCode.NOT_LEADER_OR_FOLLOWER and acks == ACKS_LEADER
        ):
            for sent in values:
                self.history.refused(sent)


def _row(response: ProduceResponse | None) -> PartitionProduceResponse | None:
    return response.responses[0].partition_responses[0] if response is not None else None
