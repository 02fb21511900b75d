"""Delivers encoded batches: idempotent, one batch of a partition at a time, many partitions at once."""

from collections import deque

from ottla.client.blocking.client import Client
from ottla.client.config import ProducerConfig
from ottla.client.engine.tasks import Operation, Task, sleep
from ottla.client.errors import BrokerError, ClientError, DeliveryFailed
from ottla.client.producing.produce_batch import produce_batch
from ottla.client.producing.producer_id import obtain_producer_id
from ottla.client.producing.verdicts import Verdict, judge
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import advance_sequence
from ottla.spark.errors import SparkRefused
from ottla.spark.exactly_once.task import TaskTransaction
from ottla.spark.write.encoding import EncodedBatch
from ottla.spark.write.identity import Identity


class _Line:
    """The batches of one partition, in order; at most the first is on its way."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[EncodedBatch] = deque()
        self.is_busy = False
        self.delivery: Task[None] | None = None


class BatchSender:
    """One task's producer; with a transaction, all that it sends is in it."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        identity: Identity,
        transaction: TaskTransaction | None = None,
    ) -> None:
        self._client = client
        self._engine = client.engine
        self._config = config
        self._lines: dict[TopicPartition, _Line] = {}
        self._identity = identity
        self._transaction = transaction
        self._error: Exception | None = None
        self._unsent_bytes = 0
        self.records_sent = 0

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
            began_ms = self._engine.now_ms
            try:
                if self._transaction is not None:
                    yield from self._transaction.added(line.partition)
                self._number(batch, line)
                yield from self._deliver_batch(line, batch, began_ms)
            except ClientError as error:
                self._error = self._explained(batch, error)
                break
            line.waiting.popleft()
            self._unsent_bytes -= len(batch.data)
            self.records_sent += batch.header.record_count
        line.is_busy = False

    def _number(self, batch: EncodedBatch, line: _Line) -> None:
        """The batch's place in the sequence. After a failure the identity is dropped, and its sequences."""
        identity = self._identity
        sequence = identity.sequences.get(line.partition, 0)
        is_transactional = self._transaction is not None
        batch.stamp(*identity.producer, sequence if identity.is_numbered else -1, is_transactional)
        identity.sequences[line.partition] = advance_sequence(sequence, batch.header.record_count)

    def _deliver_batch(self, line: _Line, batch: EncodedBatch, began_ms: int) -> Operation[None]:
        while True:
            batch.attempts += 1
            try:
                name = None if self._transaction is None else self._transaction.name
                yield from produce_batch(self._engine, self._config.acks, line.partition, batch.data, name)
                return
            except ClientError as error:
                verdict = judge(error, 1, is_first=True)
                is_over = self._engine.now_ms - began_ms >= self._config.delivery_timeout_ms
                if verdict is Verdict.DELIVERED:
                    return
                is_new_barred = verdict is Verdict.RETRY_AS_NEW_PRODUCER and self._transaction is not None
                if (
                    verdict is Verdict.FAIL
                    or is_new_barred
                    or is_over
                    or batch.attempts > self._config.retries
                ):
                    raise DeliveryFailed(line.partition, error, batch.attempts) from error
                if verdict is Verdict.RETRY_AS_NEW_PRODUCER:
                    made = yield from obtain_producer_id(self._engine, self._config.max_block_ms)
                    self._identity.become(made)
                    self._number(batch, line)
            yield from sleep(self._engine.backoff_ms(batch.attempts))

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
