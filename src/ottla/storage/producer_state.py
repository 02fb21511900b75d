"""What a partition remembers of its producers: sequences, epochs and open transactions.

Duplicates are found among a producer's last five batches; the last stable offset is the first offset of
the oldest transaction that is open, or whose end is not yet replicated.
"""

import itertools
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ottla.model.errors import ErrorCode
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, SEQUENCE_MAX, BatchHeader
from ottla.records.control import EndMarker
from ottla.records.validate import Origin

SUFFIX = ".snapshot"
REMEMBERED_BATCHES = 5
NO_COORDINATOR_EPOCH = -1
NO_TRANSACTION = -1

_SNAPSHOT_HEADER = Struct(">hIi")
_CRC_STARTS_AT = 6
_PRODUCER = Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1

_OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_INVALID_EPOCH = int(ErrorCode.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE = int(ErrorCode.INVALID_TXN_STATE)
_COORDINATOR_FENCED = int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)


def is_before(first: int, second: int) -> bool:
    """Whether a sequence number comes before another; they begin anew behind the greatest."""
    return 0 < (second - first) & SEQUENCE_MAX < SEQUENCE_MAX // 2


class CorruptSnapshot(ValueError):
    """The file is no snapshot of producers."""


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
        """Sequences before this one have been looked for in the log, as far back as that goes."""

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


class CompletedTransaction(NamedTuple):
    """A transaction whose end marker was just written."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Verification:
    """A transaction on its way to being verified with its coordinator (KIP-890)."""

    __slots__ = ("began_ms", "epoch", "lowest_sequence", "token")

    def __init__(self, token: int, epoch: int, lowest_sequence: int, began_ms: int) -> None:
        self.token = token
        self.began_ms = began_ms
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence


_tokens = itertools.count(1)
"""Over all partitions, whose state may be rebuilt: what was verified before then must not count."""


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
        self._unreplicated: list[CompletedTransaction] = []
        self._verifications: dict[int, Verification] = {}

    # -- questions ---------------------------------------------------------------------------------

    def find_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        producer = self.producers.get(header.producer_id)
        return producer.find_duplicate(header) if producer is not None else None

    def forgotten_below(self, header: BatchHeader, term_start: int) -> int | None:
        """Below which offset this batch may lie, unknown to us; None if it comes behind what is remembered.
        Nor if it has been looked for in vain: it may be sent again many times a second.

        Of its own term a leader remembers as much as Kafka's do. A state that came out of a snapshot, which
        holds each producer's last batch alone, knows less.
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
        """The error code for a data batch that does not continue its producer's story, or 0."""
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
        """The error code for an end marker of an older producer or coordinator, or 0."""
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
        """A data batch of this producer is in the log."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        self._enter_epoch(producer, header.producer_epoch)
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

    def wrote_marker(self, header: BatchHeader, marker: EndMarker) -> CompletedTransaction | None:
        """An end marker is in the log; the transaction it ended, if there was one with data."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        self._enter_epoch(producer, header.producer_epoch)
        self._verifications.pop(header.producer_id, None)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset = producer.txn_first_offset
        producer.txn_first_offset = NO_TRANSACTION
        if first_offset < 0:
            return None
        self._open_transactions.pop(first_offset, None)
        done = CompletedTransaction(
            header.producer_id, first_offset, header.last_offset, not marker.is_commit
        )
        self._unreplicated.append(done)
        return done

    @staticmethod
    def _enter_epoch(producer: Producer, epoch: int) -> None:
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches = ()
            producer.unfindable_before = None

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
        """Whether a token belongs to the verification that is under way."""
        entry = self._verifications.get(producer_id)
        return entry is not None and token == entry.token

    def last_stable_offset_after(self, done: CompletedTransaction) -> int:
        """The first offset still open once ``done`` is, or the offset behind its marker."""
        return min(self._open_transactions, default=done.last_offset + 1)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where committed data ends: the oldest open transaction, or one whose marker is not replicated."""
        if not self._open_transactions and not self._unreplicated:
            return None
        self._unreplicated = [each for each in self._unreplicated if each.last_offset >= high_watermark]
        candidates = [each.first_offset for each in self._unreplicated]
        candidates += self._open_transactions
        return min(candidates, default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers silent for too long, unless in a transaction; and what was never verified."""
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

    # -- snapshots ---------------------------------------------------------------------------------

    def encoded(self) -> bytes:
        """A snapshot's bytes; of each producer only the last batch is kept."""
        rows = [_encode_producer(producer_id, state) for producer_id, state in self.producers.items()]
        body = len(rows).to_bytes(4, "big") + b"".join(rows)
        return SNAPSHOT_VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def _encode_producer(producer_id: int, state: Producer) -> bytes:
    last = state.batches[-1] if state.batches else WrittenBatch(NO_SEQUENCE, -1, 0, state.last_timestamp)
    return _PRODUCER.pack(
        producer_id,
        state.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        state.last_timestamp,
        state.coordinator_epoch,
        state.txn_first_offset,
    )


def decode_snapshot(content: bytes, end_offset: int) -> ProducerState:
    """The state for records below ``end_offset``; raises ``CorruptSnapshot``."""
    if len(content) < _SNAPSHOT_HEADER.size:
        raise CorruptSnapshot(f"{len(content)} bytes hold no snapshot")
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"a snapshot of version {version}")
    if crc32c(content[_CRC_STARTS_AT:]) != crc:
        raise CorruptSnapshot("a snapshot's checksum is wrong")
    if len(content) != _SNAPSHOT_HEADER.size + count * _PRODUCER.size:
        raise CorruptSnapshot(f"{count} producers do not fit {len(content)} bytes")
    state = ProducerState(end_offset)
    state.snapshot_offset = end_offset
    for row in _PRODUCER.iter_unpack(content[_SNAPSHOT_HEADER.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset = row
        producer = Producer(epoch)
        if offset >= 0:
            producer.batches = (WrittenBatch(sequence, offset, delta, timestamp),)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.txn_first_offset = txn_first_offset
        state.producers[producer_id] = producer
        if txn_first_offset >= 0:
            state._open_transactions[txn_first_offset] = producer_id
    return state
