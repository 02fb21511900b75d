"""Delivers encoded batches: idempotent, one batch of a partition at a time, many partitions at once."""

from collections import deque

from ottla.client.blocking import Client
from ottla.client.config import ProducerConfig
from ottla.client.engine.metadata import Broker
from ottla.client.engine.tasks import ANY_BROKER, Operation, Task, ask, sleep
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, DeliveryFailed, TimedOut
from ottla.client.producing.verdicts import Verdict, is_stale_leader, judge
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import advance_sequence
from ottla.spark.encoding import EncodedBatch
from ottla.spark.errors import SparkRefused
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

NO_TIMEOUT_MS = 0x7FFF_FFFF


class _Line:
    """The batches of one partition, in order; at most the first is on its way."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[EncodedBatch] = deque()
        self.is_busy = False
        self.delivery: Task[None] | None = None
        self.next_sequence = 0


class BatchSender:
    """One task's producer."""

    def __init__(self, client: Client, config: ProducerConfig) -> None:
        self._client = client
        self._engine = client.engine
        self._config = config
        self._lines: dict[TopicPartition, _Line] = {}
        self._producer: tuple[int, int] = (-1, -1)
        self._error: Exception | None = None
        self._unsent_bytes = 0
        self.records_sent = 0
        if config.is_idempotent:
            self._producer = client.run(lambda _: self._obtain_producer())

    def send(self, batch: EncodedBatch) -> None:
        """Take a batch; waits while ``buffer.memory`` is full. Raises what went wrong with an earlier one."""
        partition = TopicPartition(batch.topic, batch.partition)
        line = self._lines.setdefault(partition, _Line(partition))
        line.waiting.append(batch)
        self._unsent_bytes += len(batch.data)
        self._start(line)
        self._client.turn(0)
        if self._unsent_bytes > self._config.buffer_memory:
            self._client.run_until(
                lambda: self._unsent_bytes <= self._config.buffer_memory // 2 or self._has_failed
            )
        self._raise_error()

    def flush(self) -> int:
        """Wait until all is delivered; how many records that were."""
        self._client.run_until(lambda: self._unsent_bytes == 0 or self._has_failed)
        self._raise_error()
        return self.records_sent

    def close(self) -> None:
        """Nothing more goes out: a task that failed leaves no batches to the next one of this process."""
        for line in self._lines.values():
            if line.delivery is not None:
                self._engine.cancel(line.delivery)

    @property
    def _has_failed(self) -> bool:
        return self._error is not None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _start(self, line: _Line) -> None:
        if not line.is_busy and line.waiting and self._error is None:
            line.is_busy = True
            line.delivery = self._engine.spawn(self._deliver(line))

    def _deliver(self, line: _Line) -> Operation[None]:
        """Deliver what waits in a line, batch by batch."""
        self._engine.want_topics(line.partition.topic)
        while line.waiting and self._error is None:
            batch = line.waiting[0]
            self._number(batch, line)
            began_ms = self._engine.now_ms
            try:
                yield from self._deliver_batch(line, batch, began_ms)
            except ClientError as error:
                self._error = self._explained(batch, error)
                break
            line.waiting.popleft()
            self._unsent_bytes -= len(batch.data)
            self.records_sent += batch.header.record_count
        line.is_busy = False

    def _number(self, batch: EncodedBatch, line: _Line) -> None:
        batch.stamp(*self._producer, line.next_sequence if self._config.is_idempotent else -1)
        line.next_sequence = advance_sequence(line.next_sequence, batch.header.record_count)

    def _deliver_batch(self, line: _Line, batch: EncodedBatch, began_ms: int) -> Operation[None]:
        while True:
            batch.attempts += 1
            try:
                yield from self._produce(line.partition, batch)
                return
            except ClientError as error:
                verdict = judge(error, 1, is_first_in_line=True)
                is_over = self._engine.now_ms - began_ms >= self._config.delivery_timeout_ms
                if verdict is Verdict.DELIVERED:
                    return
                if verdict is Verdict.FAIL or is_over or batch.attempts > self._config.retries:
                    raise DeliveryFailed(line.partition, error, batch.attempts) from error
                if is_stale_leader(error):
                    self._engine.refresh_soon()
                if verdict is Verdict.RETRY_AS_NEW_PRODUCER:
                    self._producer = yield from self._obtain_producer()
                    for other in self._lines.values():
                        other.next_sequence = 0
                    self._number(batch, line)
            yield from sleep(self._engine.backoff_ms(batch.attempts))

    def _produce(self, partition: TopicPartition, batch: EncodedBatch) -> Operation[None]:
        metadata = self._engine.metadata
        leader = metadata.leader_of(partition)
        if leader is None:
            self._engine.refresh_soon()
            raise ConnectionLost(f"{partition} has no leader that is known")
        rows = [PartitionProduceData(index=partition.partition, records=batch.data)]
        request = ProduceRequest(
            acks=self._config.acks,
            timeout_ms=self._engine.config.request_timeout_ms,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=rows)],
        )
        response = yield from ask(leader, request, ProduceResponse)
        answers = [row for topic in response.responses for row in topic.partition_responses]
        if not answers:
            raise ConnectionLost(f"broker {leader} answered without {partition}")
        row = answers[0]
        if row.error_code:
            endpoints = [Broker(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints]
            hint = row.current_leader
            metadata.learn_leader(partition, hint.leader_id, hint.leader_epoch, endpoints)
            raise BrokerError(row.error_code, row.error_message)
        if response.throttle_time_ms:
            yield from sleep(response.throttle_time_ms)

    def _obtain_producer(self) -> Operation[tuple[int, int]]:
        deadline_ms = self._engine.now_ms + self._config.max_block_ms
        attempts = 0
        while True:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS)
            try:
                response = yield from ask(ANY_BROKER, request, InitProducerIdResponse)
                if response.error_code:
                    raise BrokerError(response.error_code, "InitProducerId")
            except ClientError as error:
                attempts += 1
                if not error.is_retriable:
                    raise
                if self._engine.now_ms >= deadline_ms:
                    raise TimedOut("InitProducerId", self._config.max_block_ms, error) from error
                yield from sleep(self._engine.backoff_ms(attempts))
            else:
                return response.producer_id, response.producer_epoch

    def _explained(self, batch: EncodedBatch, error: ClientError) -> Exception:
        cause = error.cause if isinstance(error, DeliveryFailed) else error
        if isinstance(cause, BrokerError) and cause.code == ErrorCode.MESSAGE_TOO_LARGE:
            return SparkRefused(
                f"topic {batch.topic} refuses a batch of {len(batch.data)} bytes with "
                f"{batch.header.record_count} records: {cause}",
                "raise the topic's max.message.bytes, or "
                + (
                    "make the value smaller"
                    if batch.header.record_count == 1
                    else f"lower option kafka.batch.size={self._config.batch_size}"
                ),
            )
        return error
