"""What a partition remembers of its producers: sequences, epochs and open transactions.

Duplicates are found among a producer's last five batches; the last stable offset is the first offset of
the oldest transaction that is open, or whose end is not yet replicated.
"""

import itertools
from typing import NamedTuple

from ottla.model.errors import ErrorCode
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, SEQUENCE_MAX, BatchHeader
from ottla.records.control import EndMarker
from ottla.records.validate import Origin
from ottla.storage.segment.txn_index import AbortedTransaction

REMEMBERED_BATCHES = 5
NO_COORDINATOR_EPOCH = -1
NO_TRANSACTION = -1

_OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_INVALID_EPOCH = int(ErrorCode.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE = int(ErrorCode.INVALID_TXN_STATE)
_COORDINATOR_FENCED = int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)


def is_before(first: int, second: int) -> bool:
    """Whether a sequence number comes before another; after the greatest comes 0."""
    return 0 < (second - first) & SEQUENCE_MAX < SEQUENCE_MAX // 2


class WrittenBatch(NamedTuple):
    """One of a producer's last batches on this partition."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Producer:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "txn_first_offset",
        "unfindable_before",
    )

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        self.batches: tuple[WrittenBatch, ...] = ()
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.txn_first_offset = NO_TRANSACTION
        self.last_timestamp = -1
        self.unfindable_before: int | None = None
        """Sequences before this one were searched for in the log in vain."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        """The remembered batch with exactly this epoch and these sequences."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None


class EndedTransaction(NamedTuple):
    """A transaction from its first batch to its end marker."""

    first_offset: int
    last_offset: int


class Verification:
    """A transaction that is being verified with its coordinator (KIP-890)."""

    __slots__ = ("began_ms", "epoch", "lowest_sequence", "token")

    def __init__(self, token: int, epoch: int, lowest_sequence: int, began_ms: int) -> None:
        self.token = token
        self.began_ms = began_ms
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence


_tokens = itertools.count(1)
"""Shared by all partitions: a token from before a state was rebuilt must not match a new one."""


class ProducerState:
    """All producers of one partition. ``end_offset`` is the log end that this state stands for."""

    __slots__ = (
        "_open_transactions",
        "_unreplicated",
        "_verifications",
        "end_offset",
        "producers",
        "snapshot_offset",
    )

    def __init__(self, end_offset: int = 0) -> None:
        self.producers: dict[int, Producer] = {}
        self.end_offset = end_offset
        self.snapshot_offset = -1
        """The log end that the last snapshot stands for."""
        self._open_transactions: dict[int, int] = {}
        self._unreplicated: list[EndedTransaction] = []
        self._verifications: dict[int, Verification] = {}

    # -- questions ---------------------------------------------------------------------------------

    def find_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        producer = self.producers.get(header.producer_id)
        return producer.find_duplicate(header) if producer is not None else None

    def forgotten_below(self, header: BatchHeader, term_start: int) -> int | None:
        """Below which offset the log may have this batch, though it is not remembered; ``None`` if it cannot.
        Also ``None`` if it was searched for in vain: producers retry many times a second.

        In its own epoch a leader remembers five batches, as Kafka does. A state from a snapshot has only
        each producer's last batch.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch or not producer.batches:
            return None
        oldest = producer.batches[0]
        if not is_before(header.last_sequence, oldest.first_sequence):
            return None
        searched = producer.unfindable_before
        if searched is not None and is_before(header.base_sequence, searched):
            return None
        is_loaded = len(producer.batches) < REMEMBERED_BATCHES
        return oldest.first_offset if is_loaded else min(oldest.first_offset, term_start)

    def has_open_transaction(self, producer_id: int) -> bool:
        producer = self.producers.get(producer_id)
        return producer is not None and producer.txn_first_offset >= 0

    def refuse_batch(self, header: BatchHeader, origin: Origin) -> int:
        """The error code for a data batch with a wrong epoch, sequence or transaction state, or 0."""
        producer = self.producers.get(header.producer_id)
        if origin == Origin.CLIENT and (code := self._refuse_sequence(producer, header)):
            return code
        if producer is None:
            return 0
        if header.producer_epoch < producer.epoch:
            return _INVALID_EPOCH
        if producer.txn_first_offset >= 0 and not header.is_transactional:
            return _INVALID_TXN_STATE
        return 0

    def _refuse_sequence(self, producer: Producer | None, header: BatchHeader) -> int:
        first = header.base_sequence
        if producer is not None and header.producer_epoch < producer.epoch:
            return _INVALID_EPOCH
        verification = self._verifications.get(header.producer_id)
        if verification is not None and first > verification.lowest_sequence:
            return _OUT_OF_ORDER
        if producer is None or producer.epoch == NO_PRODUCER_EPOCH:
            return 0
        if header.producer_epoch != producer.epoch:
            return 0 if first == 0 else _OUT_OF_ORDER
        last = producer.last_sequence
        expected = 0 if last == SEQUENCE_MAX else last + 1
        return 0 if first == expected else _OUT_OF_ORDER

    def refuse_marker(self, header: BatchHeader, marker: EndMarker) -> int:
        """The error code for an end marker with an old producer or coordinator epoch, or 0."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return 0
        if header.producer_epoch < producer.epoch:
            return _INVALID_EPOCH
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return _COORDINATOR_FENCED
        return 0

    # -- changes -----------------------------------------------------------------------------------

    def wrote_batch(self, header: BatchHeader) -> None:
        """Take note of a data batch that is in the log."""
        producer = self._entered(header)
        written = WrittenBatch(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
        )
        producer.batches = (*producer.batches[-(REMEMBERED_BATCHES - 1) :], written)
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self._verifications.pop(header.producer_id, None)
            if producer.txn_first_offset < 0:
                producer.txn_first_offset = header.base_offset
                self._open_transactions[header.base_offset] = header.producer_id

    def wrote_marker(self, header: BatchHeader, marker: EndMarker) -> AbortedTransaction | None:
        """Take note of an end marker that is in the log; returns the transaction if it aborted one."""
        producer = self._entered(header)
        self._verifications.pop(header.producer_id, None)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset = producer.txn_first_offset
        producer.txn_first_offset = NO_TRANSACTION
        if first_offset < 0:
            return None
        self._open_transactions.pop(first_offset, None)
        self._unreplicated.append(EndedTransaction(first_offset, header.last_offset))
        if marker.is_commit:
            return None
        last_stable_offset = min(self._open_transactions, default=header.last_offset + 1)
        return AbortedTransaction(header.producer_id, first_offset, header.last_offset, last_stable_offset)

    def _entered(self, header: BatchHeader) -> Producer:
        """The producer of a batch, in the batch's epoch."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches = ()
            producer.unfindable_before = None
        return producer

    def restore(self, producer_id: int, producer: Producer) -> None:
        """Take a producer over from a snapshot."""
        self.producers[producer_id] = producer
        if producer.txn_first_offset >= 0:
            self._open_transactions[producer.txn_first_offset] = producer_id

    def start_verification(self, producer_id: int, epoch: int, sequence: int, now_ms: int = 0) -> int | None:
        """A token to be shown with the append; ``None`` if the transaction is open already."""
        if self.has_open_transaction(producer_id):
            return None
        entry = self._verifications.get(producer_id)
        if entry is None:
            entry = Verification(next(_tokens), epoch, sequence, now_ms)
            self._verifications[producer_id] = entry
        elif epoch > entry.epoch:
            entry.epoch, entry.lowest_sequence = epoch, sequence
        elif epoch == entry.epoch and sequence < entry.lowest_sequence:
            entry.lowest_sequence = sequence
        return entry.token

    def is_verified(self, producer_id: int, token: int | None) -> bool:
        """Whether a token is that of the current verification."""
        entry = self._verifications.get(producer_id)
        return entry is not None and token == entry.token

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where committed data ends: the oldest open transaction, or one whose marker is not replicated."""
        if not self._open_transactions and not self._unreplicated:
            return None
        self._unreplicated = [each for each in self._unreplicated if each.last_offset >= high_watermark]
        candidates = [each.first_offset for each in self._unreplicated]
        candidates += self._open_transactions
        return min(candidates, default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for too long, except in a transaction; and old verifications."""
        gone = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.txn_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self.producers[producer_id]
        self._verifications = {
            producer_id: entry
            for producer_id, entry in self._verifications.items()
            if now_ms - entry.began_ms < expiration_ms
        }
