"""The producer's core: records in, deliveries out, everything between decided here and sent by the engine."""

from collections.abc import Iterator

from ottla.client.config import ProducerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import Broker, TopicInfo
from ottla.client.engine.tasks import ANY_BROKER, Ask, Operation, Signal, ask, sleep, wait_for
from ottla.client.errors import (
    BrokerError,
    BufferFull,
    ClientClosed,
    ClientError,
    ConnectionLost,
    DeliveryFailed,
    RecordTooLarge,
    TimedOut,
)
from ottla.client.producing.batches import Batch, Delivery, PartitionLine, size_of
from ottla.client.producing.homeless import Homeless, HomelessRecords
from ottla.client.producing.partitioner import StickyPartitions, partition_of_key
from ottla.client.producing.verdicts import Verdict, is_stale_leader, judge
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import HEADER_SIZE, NO_SEQUENCE, NO_TIMESTAMP
from ottla.records.record import Record
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

INT64_MAX = 2**63 - 1
BATCHES_REMEMBERED = 5
"""So many batches of a producer a partition remembers, and so many may be on their way to it."""


class ProducerCore:
    """Batches records per partition and sees them delivered, in order and (by default) exactly once."""

    def __init__(self, engine: Engine, config: ProducerConfig) -> None:
        self.config = config
        self.buffered_bytes = 0
        self.progress = Signal()
        """Fires when deliveries were decided."""
        self._engine = engine
        self._sticky = StickyPartitions(config.batch_size, engine.random)
        self._homeless = HomelessRecords(engine, config.max_block_ms)
        self._lines: dict[TopicPartition, PartitionLine] = {}
        self._busy: dict[TopicPartition, PartitionLine] = {}
        """The lines that are not empty."""
        self._requests_to: dict[int, int] = {}
        self._producer: tuple[int, int] | None = None
        """What new lines begin with; each goes on with epochs of its own."""
        self._is_obtaining_producer = False
        self._flushes = 0
        self._wake = Signal()
        engine.spawn(self._sender())
        engine.spawn(self._watch_metadata())

    # What users do

    def send(self, topic: str, record: Record, partition: int | None = None) -> Delivery:
        """Take a record. What can never be sent is refused at once, as is too much; all else comes later."""
        if self._engine.is_closed:
            raise ClientClosed("the client was closed")
        if not NO_TIMESTAMP <= record.timestamp <= INT64_MAX:
            raise ValueError(f"{record.timestamp} is no timestamp: milliseconds since 1970")
        size = size_of(record)
        if HEADER_SIZE + size > self.config.max_request_size:
            raise RecordTooLarge(
                f"a record of {size} bytes; max.request.size is {self.config.max_request_size}"
            )
        if self.buffered_bytes + size > self.config.buffer_memory and self.buffered_bytes:
            raise BufferFull(f"{self.buffered_bytes} bytes wait for brokers to take them")
        delivery = Delivery()
        self.buffered_bytes += size
        info = self._engine.metadata.topic(topic)
        if info is not None and topic not in self._homeless.at:
            self._place(info, record, delivery, partition, size)
        else:
            self._homeless.wait_for_topic(topic, Homeless(record, delivery, partition, size))
            self._engine.fire(self._wake)
        return delivery

    def flush(self) -> Operation[None]:
        """Wait until all that was sent before is delivered or has failed."""
        waiting = [delivery for delivery in self._undecided() if not delivery.is_done]
        self._flushes += 1
        self._engine.fire(self._wake)
        try:
            for delivery in waiting:
                while not delivery.is_done:
                    yield from wait_for(self.progress)
        finally:
            self._flushes -= 1

    def close(self) -> None:
        """Fail what is not delivered."""
        closed = ClientClosed("the producer was closed")
        for homeless in list(self._homeless):
            self._drop(homeless, closed)
        self._homeless.clear()
        for line in list(self._busy.values()):
            for batch in (*line.retrying, *line.waiting):
                self._fail(batch, closed)
            line.retrying.clear()
            line.waiting.clear()

    def _undecided(self) -> Iterator[Delivery]:
        """One delivery of every batch, and those without a batch."""
        for homeless in self._homeless:
            yield homeless.delivery
        for line in self._busy.values():
            for batch in (*line.in_flight, *line.retrying, *line.waiting):
                yield batch.deliveries[-1]

    # Records find their partition

    def _place(
        self, topic: TopicInfo, record: Record, delivery: Delivery, partition: int | None, size: int
    ) -> None:
        if partition is None:
            if record.key is not None:
                partition = partition_of_key(record.key, len(topic.partitions))
            else:
                partition = self._sticky.choose(topic, size)
        name = TopicPartition(topic.name, partition)
        if partition not in topic.partitions or name in self._homeless.at:
            self._homeless.wait_for_partition(name, Homeless(record, delivery, partition, size))
            self._engine.fire(self._wake)
            return
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = PartitionLine(name)
        if line.is_empty:
            self._busy[name] = line
        waiting = len(line.waiting)
        line.open_batch(self._engine.now_ms, size, self.config.batch_size).add(record, delivery, size)
        if len(line.waiting) > waiting:
            self._engine.fire(self._wake)

    def _house(self) -> None:
        """Place the records whose topic and partition are known by now; some give up."""
        for homeless, found in self._homeless.decided():
            if isinstance(found, ClientError):
                self._drop(homeless, found)
            else:
                self._place(found, homeless.record, homeless.delivery, homeless.partition, homeless.size)

    def _drop(self, homeless: Homeless, error: ClientError) -> None:
        self.buffered_bytes -= homeless.size
        homeless.delivery.fail(error)
        self._engine.fire(self.progress)

    # Batches find their broker

    def _sender(self) -> Operation[None]:
        """Sends what is ready, until the client is closed: nobody sends the rest."""
        try:
            while True:
                wake_at_ms = self._drain()
                wait_ms = None if wake_at_ms is None else max(0, wake_at_ms - self._engine.now_ms)
                yield from wait_for(self._wake, wait_ms)
        except ClientClosed:
            self.close()

    def _watch_metadata(self) -> Operation[None]:
        while True:
            yield from wait_for(self._engine.metadata_came)
            self._engine.fire(self._wake)

    def _drain(self) -> int | None:
        """Send all that may be sent; when to look again, if nothing happens before."""
        self._house()
        self._expire()
        if self._is_numbered():
            self._send_ready()
        elif self._busy and not self._is_obtaining_producer:
            self._is_obtaining_producer = True
            self._engine.spawn(self._obtain_producer())
        return self._wake_at_ms()

    def _is_numbered(self) -> bool:
        """Whether batches can have numbers, if they need any. Lines whose order was lost begin anew."""
        if not self.config.is_idempotent:
            return True
        for line in self._busy.values():
            if line.begin_anew() and line.producer is None:
                self._producer = None
        if self._producer is None:
            return False
        for line in self._busy.values():
            line.producer = line.producer or self._producer
        return True

    def _send_ready(self) -> None:
        linger_ms = 0 if self._flushes else self.config.linger_ms
        while True:
            by_leader: dict[int, list[PartitionLine]] = {}
            for line in list(self._busy.values()):
                if self._ready_in(line, linger_ms) is None:
                    continue
                leader = self._engine.metadata.leader_of(line.partition)
                if leader is None:
                    self._engine.refresh_soon()
                elif self._requests_to.get(leader, 0) < self.config.max_in_flight_requests_per_connection:
                    by_leader.setdefault(leader, []).append(line)
            if not by_leader:
                return
            for leader, lines in by_leader.items():
                self._send_request(leader, lines, linger_ms)

    def _ready_in(self, line: PartitionLine, linger_ms: int) -> Batch | None:
        # Of a producer that it does not know a leader takes any batch as the first, in Kafka too: were the
        # first refused by one that does not lead yet, a second would come before it. So it goes alone.
        is_known = self.config.is_idempotent and line.acknowledged == line.producer
        in_flight_max = BATCHES_REMEMBERED if is_known else 1
        return line.next_ready(self._engine.now_ms, self.config.batch_size, linger_ms, in_flight_max)

    def _send_request(self, leader: int, lines: list[PartitionLine], linger_ms: int) -> None:
        batches: list[Batch] = []
        size = 0
        for line in lines:
            batch = self._ready_in(line, linger_ms)
            if batch is None or (batches and size + batch.size > self.config.max_request_size):
                continue
            line.take(batch)
            line.number(batch)
            batches.append(batch)
            size += batch.size
        self._requests_to[leader] = self._requests_to.get(leader, 0) + 1
        self._engine.spawn(self._deliver(leader, batches))

    def _wake_at_ms(self) -> int | None:
        times = self._homeless.next_deadlines()
        for line in self._busy.values():
            for batch in (line.retrying[:1] or [*line.waiting][:1])[:1]:
                times.append(batch.created_at_ms + self.config.delivery_timeout_ms)
            if (wake_at_ms := line.wake_at_ms(self._engine.now_ms, self.config.linger_ms)) is not None:
                times.append(wake_at_ms)
        later = [time for time in times if time > self._engine.now_ms]
        return min(later, default=None)

    # One request

    def _deliver(self, leader: int, batches: list[Batch]) -> Operation[None]:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            topic = topics.setdefault(batch.partition.topic, TopicProduceData(name=batch.partition.topic))
            records = batch.encoded(self.config.codec)
            topic.partition_data.append(
                PartitionProduceData(index=batch.partition.partition, records=records)
            )
        request = ProduceRequest(
            acks=self.config.acks,
            timeout_ms=self._engine.config.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        response: ProduceResponse | None = None
        lost: ClientError | None = None
        try:
            response = yield Ask(leader, request, ProduceResponse if self.config.acks else None)
        except ClientError as error:
            lost = error
        self._requests_to[leader] -= 1
        if lost is not None:
            for batch in batches:
                self._settle(batch, leader, lost)
        elif response is None:
            for batch in batches:
                self._succeed(batch, -1, -1)
                self._done_with(batch)
        else:
            self._take_response(leader, batches, response)
        self._engine.fire(self.progress)
        self._engine.fire(self._wake)

    def _take_response(self, leader: int, batches: list[Batch], response: ProduceResponse) -> None:
        rows = {
            TopicPartition(topic.name, row.index): row
            for topic in response.responses
            for row in topic.partition_responses
        }
        endpoints = [Broker(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints]
        for batch in batches:
            row = rows.get(batch.partition)
            if row is None:
                missing = ConnectionLost(f"broker {leader} answered without {batch.partition}")
                self._settle(batch, leader, missing)
            elif row.error_code == ErrorCode.NONE:
                self._succeed(batch, row.base_offset, row.log_append_time_ms)
                self._done_with(batch)
            else:
                hint = row.current_leader
                is_news = self._engine.metadata.learn_leader(
                    batch.partition, hint.leader_id, hint.leader_epoch, endpoints
                )
                error = BrokerError(row.error_code, _detail(row))
                self._settle(batch, leader, error, knows_better=is_news)

    def _settle(self, batch: Batch, leader: int, error: ClientError, knows_better: bool = False) -> None:
        """A batch was refused or lost: try again, or give up. ``knows_better``: the new leader is known."""
        line = self._lines[batch.partition]
        batch.last_error = error
        earlier = [b for b in (*line.in_flight, *line.retrying) if b.place < batch.place]
        verdict = judge(error, len(batch.records), is_first_in_line=not earlier)
        is_over = self._engine.now_ms - batch.created_at_ms >= self.config.delivery_timeout_ms
        if verdict in (Verdict.RETRY, Verdict.RETRY_AS_NEW_PRODUCER) and (
            is_over or batch.attempts > self.config.retries
        ):
            verdict = Verdict.FAIL
        match verdict:
            case Verdict.DELIVERED:
                self._succeed(batch, -1, -1)
            case Verdict.SPLIT:
                line.put_back(list(batch.split()))
            case Verdict.RETRY | Verdict.RETRY_AS_NEW_PRODUCER:
                line.put_back([batch])
                if not knows_better:
                    line.not_before_ms = self._engine.now_ms + self._engine.backoff_ms(batch.attempts)
                    self._doubt(batch.partition, leader, error)
                line.is_refused |= verdict is Verdict.RETRY_AS_NEW_PRODUCER
            case Verdict.FAIL:
                self._fail(batch, DeliveryFailed(batch.partition, error, batch.attempts))
        self._done_with(batch)

    def _doubt(self, partition: TopicPartition, leader: int, error: ClientError) -> None:
        """An error may mean that the metadata is out of date."""
        if is_stale_leader(error):
            self._engine.refresh_soon()
            if isinstance(error, BrokerError):
                self._engine.metadata.forget_leader(partition, leader)

    def _done_with(self, batch: Batch) -> None:
        line = self._lines[batch.partition]
        line.in_flight.remove(batch)
        if line.is_empty:
            self._busy.pop(batch.partition, None)

    # Ends

    def _succeed(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        self._lines[batch.partition].acknowledged = batch.producer
        for n, (record, delivery) in enumerate(zip(batch.records, batch.deliveries, strict=True)):
            offset = base_offset + n if base_offset >= 0 else -1
            timestamp = append_time_ms if append_time_ms >= 0 else record.timestamp
            self.buffered_bytes -= size_of(record)
            delivery.succeed(batch.partition, offset, timestamp)

    def _fail(self, batch: Batch, error: ClientError) -> None:
        for record, delivery in zip(batch.records, batch.deliveries, strict=True):
            self.buffered_bytes -= size_of(record)
            delivery.fail(error)
        if batch.base_sequence != NO_SEQUENCE:
            # Its sequence numbers are lost with it: what follows would be out of order for ever.
            self._lines[batch.partition].has_gap = True
        self._engine.fire(self.progress)

    def _expire(self) -> None:
        for name, line in list(self._busy.items()):
            for batch in line.expired(self._engine.now_ms, self.config.delivery_timeout_ms):
                cause = batch.last_error or self._why_not_sent(name)
                self._fail(batch, DeliveryFailed(name, cause, batch.attempts))
            if line.is_empty:
                self._busy.pop(name, None)

    def _why_not_sent(self, partition: TopicPartition) -> ClientError:
        if self._engine.metadata_error is not None:
            return self._engine.metadata_error
        if self._engine.metadata.leader_of(partition) is None:
            return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader")
        return TimedOut("delivery", self.config.delivery_timeout_ms, None)

    # Idempotence

    def _obtain_producer(self) -> Operation[None]:
        """A fresh id: for the start, and when a line has used up the epochs of the old one."""
        attempts = 0
        while True:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFF_FFFF)
            attempts += 1
            try:
                response = yield from ask(ANY_BROKER, request, InitProducerIdResponse)
                if response.error_code:
                    raise BrokerError(response.error_code, "InitProducerId")
            except ClientError as error:
                if not error.is_retriable:
                    self._refuse_all(error)
                    self._is_obtaining_producer = False
                    return
                yield from sleep(self._engine.backoff_ms(attempts))
            else:
                break
        self._producer = (response.producer_id, response.producer_epoch)
        self._is_obtaining_producer = False
        self._engine.fire(self._wake)

    def _refuse_all(self, error: ClientError) -> None:
        """No producer id can be had: nothing that waits can be sent."""
        for name, line in list(self._busy.items()):
            for batch in (*line.retrying, *line.waiting):
                self._fail(batch, DeliveryFailed(name, error, batch.attempts))
            line.retrying.clear()
            line.waiting.clear()
            self._busy.pop(name, None)


def _detail(row: PartitionProduceResponse) -> str | None:
    """A broker's words on a refused batch."""
    if row.record_errors and not row.error_message:
        return row.record_errors[0].batch_index_error_message
    return row.error_message
