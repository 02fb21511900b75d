"""The producer's core: it batches records, decides what to send, and settles deliveries. Sans-IO."""

from collections.abc import Iterator

from ottla.client.config import ProducerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import TopicInfo
from ottla.client.engine.tasks import Ask, Operation, Signal, wait_for
from ottla.client.errors import (
    BrokerError,
    BufferFull,
    ClientClosed,
    ClientError,
    DeliveryFailed,
    RecordTooLarge,
    TimedOut,
    WrongTransactionState,
)
from ottla.client.producing.batches import Batch, Delivery, PartitionQueue, size_of
from ottla.client.producing.partitioner import StickyPartitions, partition_of_key
from ottla.client.producing.produce_batch import Refused, doubt_leader, produce_request, read_response
from ottla.client.producing.producer_id import obtain_producer_id
from ottla.client.producing.transactions import Transactions
from ottla.client.producing.unplaced import UnplacedRecord, UnplacedRecords
from ottla.client.producing.verdicts import Verdict, judge
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import HEADER_SIZE, NO_SEQUENCE, NO_TIMESTAMP
from ottla.records.record import Record
from ottla.wire.apis.produce import ProduceResponse

INT64_MAX = 2**63 - 1
BATCHES_REMEMBERED = 5
"""How many batches of a producer a partition remembers, and how many may be in flight to it."""


class ProducerCore:
    """Batches records per partition and delivers them, in order and (by default) exactly once."""

    def __init__(self, engine: Engine, config: ProducerConfig) -> None:
        self.config = config
        self.buffered_bytes = 0
        self.progress = Signal()
        """Fires when deliveries are done."""
        self._engine = engine
        self._sticky = StickyPartitions(config.batch_size, engine.random)
        self._unplaced = UnplacedRecords(engine, config.max_block_ms)
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        """The queues that are not empty."""
        self._requests_to: dict[int, int] = {}
        self._producer: tuple[int, int] | None = None
        """Producer id and epoch for new queues; each queue raises its own epoch."""
        self._is_obtaining_producer = False
        self._flushes = 0
        self._wake = Signal()
        self._transactions: Transactions | None = None
        if config.transactional_id is not None:
            self._transactions = Transactions(engine, config, config.transactional_id, self)
        engine.spawn(self._sender())
        engine.spawn(self._watch_metadata())

    # What users do

    def send(self, topic: str, record: Record, partition: int | None = None) -> Delivery:
        """Take a record. Raises if it can never be sent or the buffer is full; other errors come later."""
        if self._engine.is_closed:
            raise ClientClosed("the client was closed")
        if self._transactions is not None:
            self._transactions.check_send()
        if not NO_TIMESTAMP <= record.timestamp <= INT64_MAX:
            raise ValueError(f"{record.timestamp} is not a timestamp: milliseconds since 1970")
        size = size_of(record)
        if HEADER_SIZE + size > self.config.max_request_size:
            raise RecordTooLarge(
                f"a record of {size} bytes is larger than max.request.size={self.config.max_request_size}"
            )
        if self.buffered_bytes + size > self.config.buffer_memory and self.buffered_bytes:
            raise BufferFull(f"the buffer is full: {self.buffered_bytes} bytes are not delivered yet")
        delivery = Delivery()
        self.buffered_bytes += size
        info = self._engine.metadata.topic(topic)
        if info is not None and topic not in self._unplaced.at:
            self._place(info, record, delivery, partition, size)
        else:
            self._unplaced.wait_for_topic(topic, UnplacedRecord(record, delivery, partition, size))
            self._engine.fire(self._wake)
        return delivery

    @property
    def transactions(self) -> Transactions:
        """What a producer with a transactional id has beside its records."""
        if self._transactions is None:
            raise WrongTransactionState("this producer has no transactions: make one with a transactional_id")
        return self._transactions

    def flush(self) -> Operation[None]:
        """Wait until every record sent before is delivered or has failed."""
        waiting = [delivery for delivery in self._undecided() if not delivery.is_done]
        self._flushes += 1
        self._engine.fire(self._wake)
        try:
            for delivery in waiting:
                while not delivery.is_done:
                    yield from wait_for(self.progress)
        finally:
            self._flushes -= 1

    def end(self) -> Operation[None]:
        """Deliver what was sent, or abort the transaction that is open; then ``close``."""
        if self._transactions is not None and self._transactions.must_abort:
            yield from self._transactions.abort()
        else:
            yield from self.flush()
        self.close()

    def close(self) -> None:
        """Fail all records that are not delivered."""
        self._drop_unsent(ClientClosed("the producer was closed"))

    def _drop_unsent(self, error: ClientError) -> None:
        """Fail all records that are not in flight."""
        for unplaced in list(self._unplaced):
            self._drop(unplaced, error)
        self._unplaced.clear()
        for name, queue in list(self._busy.items()):
            for batch in (*queue.retrying, *queue.waiting):
                self._fail(batch, error)
            queue.retrying.clear()
            queue.waiting.clear()
            if queue.is_empty:
                self._busy.pop(name, None)

    def _undecided(self) -> Iterator[Delivery]:
        """One delivery of every batch, and those without a batch."""
        for unplaced in self._unplaced:
            yield unplaced.delivery
        for queue in self._busy.values():
            for batch in (*queue.in_flight, *queue.retrying, *queue.waiting):
                yield batch.deliveries[-1]

    # Placing records

    def _place(
        self, topic: TopicInfo, record: Record, delivery: Delivery, partition: int | None, size: int
    ) -> None:
        if partition is None:
            if record.key is not None:
                partition = partition_of_key(record.key, len(topic.partitions))
            else:
                partition = self._sticky.choose(topic, size)
        name = TopicPartition(topic.name, partition)
        if partition not in topic.partitions or name in self._unplaced.at:
            self._unplaced.wait_for_partition(name, UnplacedRecord(record, delivery, partition, size))
            self._engine.fire(self._wake)
            return
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = PartitionQueue(name)
        if queue.is_empty:
            self._busy[name] = queue
        waiting = len(queue.waiting)
        queue.open_batch(self._engine.now_ms, size, self.config.batch_size).add(record, delivery, size)
        if len(queue.waiting) > waiting:
            self._engine.fire(self._wake)

    def _place_known(self) -> None:
        """Place the records whose topic and partition are known by now; fail those that give up."""
        for unplaced, found in self._unplaced.decided():
            if isinstance(found, ClientError):
                self._drop(unplaced, found)
            else:
                self._place(found, unplaced.record, unplaced.delivery, unplaced.partition, unplaced.size)

    def _drop(self, unplaced: UnplacedRecord, error: ClientError) -> None:
        self.buffered_bytes -= unplaced.size
        unplaced.delivery.fail(error)
        if self._transactions is not None:
            self._transactions.delivery_failed(error, was_sent=False)
        self._engine.fire(self.progress)

    # Sending batches

    def _sender(self) -> Operation[None]:
        """Send ready batches until the client is closed, then fail the rest."""
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
        """Send all ready batches; return when to look again, if nothing happens before."""
        self._place_known()
        self._expire()
        if self._transactions is not None:
            self._send_in_transaction(self._transactions)
        elif self._is_numbered():
            self._send_ready()
        elif self._busy and not self._is_obtaining_producer:
            self._is_obtaining_producer = True
            self._engine.spawn(self._obtain_producer())
        return self._wake_at_ms()

    def _is_numbered(self) -> bool:
        """Whether batches can be numbered, if they must be. Restarts the sequences of queues that need it."""
        if not self.config.is_idempotent:
            return True
        for queue in self._busy.values():
            if queue.begin_anew() and queue.producer is None:
                self._producer = None
        if self._producer is None:
            return False
        for queue in self._busy.values():
            queue.producer = queue.producer or self._producer
        return True

    def _send_ready(self) -> None:
        linger_ms = 0 if self._flushes else self.config.linger_ms
        while True:
            by_leader: dict[int, list[PartitionQueue]] = {}
            for queue in list(self._busy.values()):
                if self._ready_in(queue, linger_ms) is None:
                    continue
                leader = self._engine.metadata.leader_of(queue.partition)
                if leader is None:
                    self._engine.refresh_soon()
                elif self._requests_to.get(leader, 0) < self.config.max_in_flight_requests_per_connection:
                    by_leader.setdefault(leader, []).append(queue)
            if not by_leader:
                return
            for leader, queues in by_leader.items():
                self._send_request(leader, queues, linger_ms)

    def _ready_in(self, queue: PartitionQueue, linger_ms: int) -> Batch | None:
        # A leader takes any batch of an unknown producer as its first, in Kafka too. If the first batch met a
        # broker that does not lead yet, a second one could overtake it, so the first is sent alone.
        if self._transactions is not None and queue.partition not in self._transactions.partitions:
            return None
        is_known = self.config.is_idempotent and queue.acknowledged == queue.producer
        in_flight_max = BATCHES_REMEMBERED if is_known else 1
        return queue.next_ready(self._engine.now_ms, self.config.batch_size, linger_ms, in_flight_max)

    def _send_request(self, leader: int, queues: list[PartitionQueue], linger_ms: int) -> None:
        batches: list[Batch] = []
        size = 0
        for queue in queues:
            batch = self._ready_in(queue, linger_ms)
            if batch is None or (batches and size + batch.size > self.config.max_request_size):
                continue
            queue.take(batch)
            queue.number(batch)
            batches.append(batch)
            size += batch.size
        self._requests_to[leader] = self._requests_to.get(leader, 0) + 1
        self._engine.spawn(self._deliver(leader, batches))

    def _wake_at_ms(self) -> int | None:
        times = self._unplaced.next_deadlines()
        for queue in self._busy.values():
            for batch in (queue.retrying[:1] or [*queue.waiting][:1])[:1]:
                times.append(batch.created_at_ms + self.config.delivery_timeout_ms)
            if (wake_at_ms := queue.wake_at_ms(self._engine.now_ms, self.config.linger_ms)) is not None:
                times.append(wake_at_ms)
        later = [time for time in times if time > self._engine.now_ms]
        return min(later, default=None)

    # One request

    def _deliver(self, leader: int, batches: list[Batch]) -> Operation[None]:
        transactional_id = self.config.transactional_id
        encoded = [
            (batch.partition, batch.encoded(self.config.codec, is_transactional=transactional_id is not None))
            for batch in batches
        ]
        request = produce_request(self._engine, self.config.acks, encoded, transactional_id)
        response: ProduceResponse | None = None
        lost: ClientError | None = None
        try:
            response = yield Ask(leader, request, ProduceResponse if self.config.acks else None)
        except ClientError as error:
            lost = error
        self._requests_to[leader] -= 1
        if lost is not None:
            for batch in batches:
                self._settle(batch, leader, Refused(lost))
        elif response is None:
            for batch in batches:
                self._succeed(batch, -1, -1)
                self._done_with(batch)
        else:
            self._take_response(leader, batches, response)
        self._engine.fire(self.progress)
        self._engine.fire(self._wake)

    def _take_response(self, leader: int, batches: list[Batch], response: ProduceResponse) -> None:
        partitions = [batch.partition for batch in batches]
        outcomes = read_response(self._engine.metadata, leader, partitions, response)
        for batch in batches:
            outcome = outcomes[batch.partition]
            if isinstance(outcome, Refused):
                self._settle(batch, leader, outcome)
            else:
                self._succeed(batch, outcome.base_offset, outcome.log_append_time_ms)
                self._done_with(batch)

    def _settle(self, batch: Batch, leader: int, refused: Refused) -> None:
        """A batch was refused or its connection was lost: retry it or fail it."""
        error = refused.error
        queue = self._queues[batch.partition]
        batch.last_error = error
        earlier = [b for b in (*queue.in_flight, *queue.retrying) if b.place < batch.place]
        verdict = judge(error, len(batch.records), is_first=not earlier)
        is_over = self._engine.now_ms - batch.created_at_ms >= self.config.delivery_timeout_ms
        if verdict in (Verdict.RETRY, Verdict.RETRY_AS_NEW_PRODUCER) and (
            is_over or batch.attempts > self.config.retries
        ):
            verdict = Verdict.FAIL
        if verdict is Verdict.RETRY_AS_NEW_PRODUCER and self._transactions is not None:
            verdict = Verdict.FAIL  # Only the coordinator raises the epoch, after an abort.
        match verdict:
            case Verdict.DELIVERED:
                self._succeed(batch, -1, -1)
            case Verdict.SPLIT:
                queue.put_back(list(batch.split()))
            case Verdict.RETRY | Verdict.RETRY_AS_NEW_PRODUCER:
                queue.put_back([batch])
                if not refused.names_leader:
                    queue.not_before_ms = self._engine.now_ms + self._engine.backoff_ms(batch.attempts)
                    doubt_leader(self._engine, batch.partition, leader, error)
                queue.is_refused |= verdict is Verdict.RETRY_AS_NEW_PRODUCER
            case Verdict.FAIL:
                self._fail(batch, DeliveryFailed(batch.partition, error, batch.attempts))
        self._done_with(batch)

    def _done_with(self, batch: Batch) -> None:
        queue = self._queues[batch.partition]
        queue.in_flight.remove(batch)
        if queue.is_empty:
            self._busy.pop(batch.partition, None)

    # Ends

    def _succeed(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        self._queues[batch.partition].acknowledged = batch.producer
        for n, (record, delivery) in enumerate(zip(batch.records, batch.deliveries, strict=True)):
            offset = base_offset + n if base_offset >= 0 else -1
            timestamp = append_time_ms if append_time_ms >= 0 else record.timestamp
            self.buffered_bytes -= size_of(record)
            delivery.succeed(batch.partition, offset, timestamp)

    def _fail(self, batch: Batch, error: ClientError) -> None:
        for record, delivery in zip(batch.records, batch.deliveries, strict=True):
            self.buffered_bytes -= size_of(record)
            delivery.fail(error)
        if self._transactions is not None:
            self._transactions.delivery_failed(error, was_sent=batch.base_sequence != NO_SEQUENCE)
        if batch.base_sequence != NO_SEQUENCE:
            # Its sequence numbers are lost with it: all later batches would be out of order.
            self._queues[batch.partition].has_gap = True
        self._engine.fire(self.progress)

    def _expire(self) -> None:
        for name, queue in list(self._busy.items()):
            for batch in queue.expired(self._engine.now_ms, self.config.delivery_timeout_ms):
                cause = batch.last_error or self._why_not_sent(name)
                self._fail(batch, DeliveryFailed(name, cause, batch.attempts))
            if queue.is_empty:
                self._busy.pop(name, None)

    def _why_not_sent(self, partition: TopicPartition) -> ClientError:
        if self._engine.metadata_error is not None:
            return self._engine.metadata_error
        if self._engine.metadata.leader_of(partition) is None:
            return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader")
        return TimedOut("delivery", self.config.delivery_timeout_ms, None)

    # Transactions

    def _send_in_transaction(self, transactions: Transactions) -> None:
        """Send what may be sent; add the partitions of the rest, or fail it if the transaction has ended."""
        if (refusal := transactions.refusal) is not None:
            self._drop_unsent(refusal)
            return
        transactions.want(self._busy)
        for queue in self._busy.values():
            queue.producer = transactions.producer
        self._send_ready()

    def look_again(self) -> None:
        """The transaction has changed."""
        self._engine.fire(self._wake)

    def restart_numbers(self) -> None:
        """The producer has a new epoch and nothing left to send."""
        for queue in self._queues.values():
            queue.restart()

    # Idempotence

    def _obtain_producer(self) -> Operation[None]:
        """Get a producer id: at the start, and when a queue has used up the epochs of the old one."""
        try:
            self._producer = yield from obtain_producer_id(self._engine)
        except ClientError as error:
            self._refuse_all(error)
            self._is_obtaining_producer = False
            return
        self._is_obtaining_producer = False
        self._engine.fire(self._wake)

    def _refuse_all(self, error: ClientError) -> None:
        """No producer id is available: fail all waiting batches."""
        for name, queue in list(self._busy.items()):
            for batch in (*queue.retrying, *queue.waiting):
                self._fail(batch, DeliveryFailed(name, error, batch.attempts))
            queue.retrying.clear()
            queue.waiting.clear()
            self._busy.pop(name, None)
