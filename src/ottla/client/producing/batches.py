"""Deliveries of single records, batches, and the queue of batches per partition."""

from collections import deque
from collections.abc import Callable

from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.records.batch import HEADER_SIZE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record

RECORD_OVERHEAD_BYTES = 21
"""The most that a record takes beside its key, value and headers."""

SEQUENCE_COUNT = 1 << 31
EPOCH_MAX = 0x7FFF


class Delivery:
    """The outcome of one record: an offset or an error, once it is done."""

    __slots__ = ("error", "is_done", "offset", "partition", "then", "timestamp")

    def __init__(self) -> None:
        self.is_done = False
        self.partition: TopicPartition | None = None
        self.offset = -1
        self.timestamp = -1
        self.error: ClientError | None = None
        self.then: Callable[[Delivery], None] | None = None
        """For the edge: called once, when the delivery is done."""

    def succeed(self, partition: TopicPartition, offset: int, timestamp: int) -> None:
        self.partition, self.offset, self.timestamp = partition, offset, timestamp
        self._finish()

    def fail(self, error: ClientError) -> None:
        self.error = error
        self._finish()

    def when_done(self, then: "Callable[[Delivery], None]") -> None:
        """Call ``then`` once: now, if the delivery is done already."""
        if self.is_done:
            then(self)
        else:
            self.then = then

    def _finish(self) -> None:
        self.is_done = True
        if self.then is not None:
            self.then(self)


def size_of(record: Record) -> int:
    """The most bytes that a record takes in a batch."""
    size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += 10 + 4 * len(name) + len(value or b"")
    return size


class Batch:
    """Records of one partition that are sent together."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "created_at_ms",
        "deliveries",
        "last_error",
        "ordinal",
        "partition",
        "place",
        "producer",
        "records",
        "size",
    )

    def __init__(self, partition: TopicPartition, place: tuple[int, ...], created_at_ms: int) -> None:
        self.partition = partition
        self.place = place
        """Its place among the batches of its partition; the halves of a split batch extend it."""
        self.created_at_ms = created_at_ms
        self.records: list[Record] = []
        self.deliveries: list[Delivery] = []
        self.size = HEADER_SIZE
        self.attempts = 0
        self.last_error: ClientError | None = None
        self.producer: tuple[int, int] = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.base_sequence = NO_SEQUENCE
        self.ordinal = 0
        """How many batches of its partition were numbered before it."""

    def add(self, record: Record, delivery: Delivery, size: int) -> None:
        self.records.append(record)
        self.deliveries.append(delivery)
        self.size += size

    def encoded(self, codec: Codec, *, is_transactional: bool = False) -> bytearray:
        """The batch as bytes."""
        return build_batch(
            self.records,
            codec=codec,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self.base_sequence,
            is_transactional=is_transactional,
        )

    def forget_number(self) -> None:
        """The batch is in no log, so it may get another sequence when it is sent again."""
        self.producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.base_sequence = NO_SEQUENCE

    def split(self) -> "tuple[Batch, Batch]":
        """Two halves with consecutive sequences."""
        middle = len(self.records) // 2
        halves = tuple(Batch(self.partition, (*self.place, n), self.created_at_ms) for n in range(2))
        for n, (record, delivery) in enumerate(zip(self.records, self.deliveries, strict=True)):
            halves[n >= middle].add(record, delivery, size_of(record))
        for half, first in zip(halves, (0, middle), strict=True):
            half.attempts, half.last_error, half.producer = self.attempts, self.last_error, self.producer
            half.ordinal = self.ordinal
            if self.base_sequence != NO_SEQUENCE:
                half.base_sequence = (self.base_sequence + first) % SEQUENCE_COUNT
        return halves[0], halves[1]


class PartitionQueue:
    """The batches of one partition, in order, and the producer id and epoch that number them.

    ``retrying`` come before ``waiting``. While there are any, batches are sent one at a time, in order.
    A batch that was sent keeps its sequence until a broker has answered: it may be in the log already.
    """

    __slots__ = (
        "_count",
        "_numbered",
        "acknowledged",
        "has_gap",
        "in_flight",
        "is_refused",
        "next_sequence",
        "not_before_ms",
        "partition",
        "producer",
        "retrying",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.retrying: list[Batch] = []
        self.in_flight: list[Batch] = []
        self.producer: tuple[int, int] | None = None
        self.next_sequence = 0
        self.has_gap = False
        """A numbered batch failed: when all others are answered, sequences restart at 0."""
        self.is_refused = False
        """The broker refused the sequence of the first batch, so it has none of the later ones either."""
        self.not_before_ms = 0
        self.acknowledged: tuple[int, int] | None = None
        """The producer id and epoch of the last acknowledged batch."""
        self._count = 0
        self._numbered = 0

    @property
    def is_empty(self) -> bool:
        return not (self.waiting or self.retrying or self.in_flight)

    def open_batch(self, now_ms: int, size: int, batch_size: int) -> Batch:
        """The batch that the next record joins."""
        if self.waiting and self.waiting[-1].size + size <= batch_size:
            return self.waiting[-1]
        self._count += 1
        batch = Batch(self.partition, (self._count,), now_ms)
        self.waiting.append(batch)
        return batch

    def put_back(self, batches: list[Batch]) -> None:
        """Queue failed batches again, in their old places."""
        self.retrying += batches
        self.retrying.sort(key=lambda batch: batch.place)

    def next_ready(self, now_ms: int, batch_size: int, linger_ms: int, in_flight_max: int) -> Batch | None:
        """The batch that may be sent now, if there is one."""
        if now_ms < self.not_before_ms:
            return None
        if self.retrying:
            return self.retrying[0] if not self.in_flight else None
        if not self.waiting or self.has_gap or self.is_refused:
            return None
        if len(self.in_flight) >= in_flight_max or self._ahead >= in_flight_max:
            return None
        batch = self.waiting[0]
        is_full = len(self.waiting) > 1 or batch.size >= batch_size
        return batch if is_full or now_ms - batch.created_at_ms >= linger_ms else None

    @property
    def _ahead(self) -> int:
        """How many batches were numbered since the oldest unanswered one: a partition remembers only a few,
        and a batch that is sent again must be among them, even if another leader has taken later ones."""
        numbered = [batch.ordinal for batch in self.in_flight if batch.base_sequence != NO_SEQUENCE]
        return self._numbered - min(numbered) if numbered else 0

    def number(self, batch: Batch) -> None:
        """Give a batch its sequence if it has none."""
        if self.producer is not None and batch.base_sequence == NO_SEQUENCE:
            batch.producer = self.producer
            batch.base_sequence = self.next_sequence
            self.next_sequence = (self.next_sequence + len(batch.records)) % SEQUENCE_COUNT
            batch.ordinal = self._numbered
            self._numbered += 1

    def begin_anew(self) -> bool:
        """Restart sequences at 0 in the next epoch, if that is due and no batch is in flight.

        Whether it was done. A producer id whose epochs are used up is dropped.
        """
        if self.in_flight or not (self.is_refused or self.has_gap):
            return False
        numbered = [batch for batch in self.retrying if batch.base_sequence != NO_SEQUENCE]
        if numbered and not self.is_refused:
            return False
        for batch in numbered:
            batch.forget_number()
        self.restart()
        if self.producer is not None:
            producer_id, epoch = self.producer
            self.producer = (producer_id, epoch + 1) if epoch < EPOCH_MAX else None
        return True

    def restart(self) -> None:
        """Sequences begin at 0, in a new epoch."""
        self.has_gap = self.is_refused = False
        self.next_sequence = 0

    def take(self, batch: Batch) -> None:
        """The batch is sent."""
        if self.retrying:
            self.retrying.remove(batch)
        else:
            self.waiting.popleft()
        self.in_flight.append(batch)
        batch.attempts += 1

    def wake_at_ms(self, now_ms: int, linger_ms: int) -> int | None:
        """When backoff or ``linger.ms`` ends for the next batch."""
        if now_ms < self.not_before_ms:
            return self.not_before_ms
        if self.waiting and not self.retrying and len(self.waiting) == 1:
            return self.waiting[0].created_at_ms + linger_ms
        return None

    def expired(self, now_ms: int, delivery_timeout_ms: int) -> list[Batch]:
        """Remove the batches that exceed ``delivery.timeout.ms`` and are not in flight."""
        is_over = [
            batch
            for batch in (*self.retrying, *self.waiting)
            if now_ms - batch.created_at_ms >= delivery_timeout_ms
        ]
        for batch in is_over:
            (self.retrying if batch in self.retrying else self.waiting).remove(batch)
        return is_over
