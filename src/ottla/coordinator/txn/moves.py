"""What a request does to a transaction: the record to write next, or the error to answer.

These functions change nothing. ``is_pending`` says that a record of the transactional id is on its way to the
log, or that markers are: until then Kafka refuses every change with CONCURRENT_TRANSACTIONS.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ottla.coordinator.shard import Producer
from ottla.coordinator.txn.states import COMPLETE_OF, IDLE, LEGAL_PREVIOUS, PREPARED, TransactionState
from ottla.coordinator.txn.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    StoredTransaction,
    Transaction,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

EXHAUSTED_EPOCH = 32_766
"""The last epoch that a client gets; after it comes a new producer id."""

HIGHEST_EPOCH = 32_767
"""Only the fence of a transaction at ``EXHAUSTED_EPOCH`` has it."""


@dataclass(frozen=True, slots=True)
class Initialisation:
    """The record to write for InitProducerId, and what to remember of the epoch before."""

    target: StoredTransaction
    last_producer_id: int = NO_PRODUCER_ID
    last_epoch: int = NO_EPOCH
    fenced: StoredTransaction | None = None
    """The open transaction that it aborts, as it was."""

    @property
    def is_fence(self) -> bool:
        """A transaction was open: it is aborted first, and the client asks again."""
        return self.target.state is TransactionState.PREPARE_ABORT

    @property
    def keeps_open(self) -> bool:
        """A transaction was open, and stays so: the client takes it over."""
        return self.target.state is TransactionState.ONGOING


def initialise(
    known: Transaction | None,
    owner: Producer | None,
    timeout_ms: int,
    new_producer_id: Callable[[], int | None],
    wall_ms: int,
    *,
    is_pending: bool,
    keeps: bool = False,
) -> Initialisation | ErrorCode:
    """InitProducerId. ``owner`` is the id and epoch that a client had before (KIP-360).

    ``keeps`` asks not to abort a transaction that is open (KIP-939).
    """
    if is_pending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    empty = StoredTransaction(NO_PRODUCER_ID, 0, timeout_ms, TransactionState.EMPTY, wall_ms)
    if known is None:
        return _with_new_id(Initialisation(empty), new_producer_id)
    stored = known.stored
    if owner is not None and not _may_claim(known, owner):
        return ErrorCode.PRODUCER_FENCED
    if stored.state is TransactionState.ONGOING and keeps:
        return _resumed(known, owner, timeout_ms, new_producer_id, wall_ms)
    if stored.state is TransactionState.ONGOING:
        is_stale = owner is not None and owner != stored.owner
        return (
            ErrorCode.PRODUCER_FENCED if is_stale else Initialisation(fenced(stored, wall_ms), fenced=stored)
        )
    if stored.state not in IDLE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if stored.epoch >= EXHAUSTED_EPOCH:
        if owner is not None and owner.epoch != stored.epoch:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        last_epoch = stored.epoch if owner is not None else NO_EPOCH
        return _with_new_id(Initialisation(empty, stored.producer_id, last_epoch), new_producer_id)
    bumped = replace(empty, producer_id=stored.producer_id, epoch=stored.epoch + 1)
    if owner is None or stored.epoch == NO_EPOCH:
        return Initialisation(bumped, stored.producer_id)
    if owner.epoch == stored.epoch:
        return Initialisation(bumped, stored.producer_id, stored.epoch)
    if owner.epoch == known.last_epoch:
        again = replace(bumped, epoch=stored.epoch)
        return Initialisation(again, known.last_producer_id, known.last_epoch)
    return ErrorCode.PRODUCER_FENCED


def _may_claim(known: Transaction, owner: Producer) -> bool:
    """Whether the client's producer id is the present one, or was until its epochs were exhausted."""
    stored = known.stored
    was_exhausted = owner.producer_id == known.last_producer_id and owner.epoch >= EXHAUSTED_EPOCH
    return stored.epoch == NO_EPOCH or owner.producer_id == stored.owner.producer_id or was_exhausted


def _resumed(
    known: Transaction,
    owner: Producer | None,
    timeout_ms: int,
    new_producer_id: Callable[[], int | None],
    wall_ms: int,
) -> Initialisation | ErrorCode:
    """The next owner of an open transaction, which keeps its id, epoch and partitions.

    Its time-out may be lifted, never set: a transaction that was prepared must not end by itself.
    """
    stored, present = known.stored, known.stored.owner
    is_lifted = NO_TIMEOUT_MS in (timeout_ms, stored.timeout_ms)
    target = replace(
        stored, last_update_ms=wall_ms, timeout_ms=NO_TIMEOUT_MS if is_lifted else stored.timeout_ms
    )
    if owner is not None and owner != present:
        before = Producer(known.last_producer_id, known.last_epoch)
        is_repeated = stored.resumed_by is not None and owner == before
        return Initialisation(target, *before) if is_repeated else ErrorCode.PRODUCER_FENCED
    following = Producer(present.producer_id, present.epoch + 1)
    if present.epoch >= EXHAUSTED_EPOCH:
        producer_id = new_producer_id()
        if producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        following = Producer(producer_id, 0)
    last_epoch = NO_EPOCH if owner is None else owner.epoch
    return Initialisation(replace(target, resumed_by=following), present.producer_id, last_epoch)


def _with_new_id(
    planned: Initialisation, new_producer_id: Callable[[], int | None]
) -> Initialisation | ErrorCode:
    producer_id = new_producer_id()
    if producer_id is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return replace(planned, target=replace(planned.target, producer_id=producer_id))


def add_partitions(
    known: Transaction | None,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    wall_ms: int,
    *,
    is_pending: bool,
) -> StoredTransaction | ErrorCode:
    """AddPartitionsToTxn and AddOffsetsToTxn; NONE when there is nothing to write."""
    refusal = _not_owner(known, producer)
    if known is None or refusal is not ErrorCode.NONE:
        return refusal
    if is_pending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    stored = known.stored
    is_open = stored.state is TransactionState.ONGOING
    if stored.resumed_by is not None:
        return ErrorCode.INVALID_TXN_STATE
    added = stored.partitions.union(partitions)
    if is_open and added == stored.partitions:
        return ErrorCode.NONE
    target = replace(
        stored,
        state=TransactionState.ONGOING,
        last_update_ms=wall_ms,
        start_ms=stored.start_ms if is_open else wall_ms,
        partitions=added,
    )
    return _if_legal(stored, target)


def verify(
    known: Transaction | None, producer: Producer, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Whether a broker may write to partitions (KIP-890). A record under way does not matter here."""
    error = _not_owner(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return dict.fromkeys(partitions, error)
    stored = known.stored
    if stored.state in PREPARED:
        return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
    writable = stored.partitions if stored.resumed_by is None else frozenset()
    return {tp: ErrorCode.NONE if tp in writable else ErrorCode.TRANSACTION_ABORTABLE for tp in partitions}


def end(
    known: Transaction | None, producer: Producer, wall_ms: int, *, is_commit: bool, is_pending: bool
) -> StoredTransaction | ErrorCode:
    """EndTxn; NONE if the transaction has ended with this outcome already."""
    refusal = _not_owner(known, producer)
    if known is None or refusal is not ErrorCode.NONE:
        return refusal
    if is_pending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    if known.stored.state is COMPLETE_OF[prepared]:
        return ErrorCode.NONE
    if known.stored.state in IDLE:
        return ErrorCode.INVALID_TXN_STATE
    return _if_legal(known.stored, _decided(known.stored, prepared, known.stored.owner, wall_ms))


def fenced(stored: StoredTransaction, wall_ms: int) -> StoredTransaction:
    """Abort an open transaction under the next epoch, so that its owner can write no more."""
    owner = Producer(stored.owner.producer_id, _next_epoch(stored.owner.epoch))
    return _decided(stored, TransactionState.PREPARE_ABORT, owner, wall_ms)


def _decided(
    stored: StoredTransaction, state: TransactionState, owner: Producer, wall_ms: int
) -> StoredTransaction:
    """The outcome, whose markers raise the epoch if the transaction has changed hands.

    Whoever wrote its records can write no more then. An owner with another producer id gets the transactional
    id when all markers are written; until then the log must name both.
    """
    decided = replace(stored, state=state, last_update_ms=wall_ms)
    if owner.producer_id == stored.producer_id:
        return replace(decided, epoch=owner.epoch, resumed_by=None)
    return replace(decided, epoch=_next_epoch(stored.epoch), resumed_by=owner)


def _next_epoch(epoch: int) -> int:
    return min(epoch + 1, HIGHEST_EPOCH)


def completed(stored: StoredTransaction, wall_ms: int) -> StoredTransaction:
    """Every partition of a prepared transaction has its marker."""
    return replace(
        stored,
        producer_id=stored.owner.producer_id,
        epoch=stored.owner.epoch,
        state=COMPLETE_OF[stored.state],
        partitions=frozenset(),
        last_update_ms=wall_ms,
        resumed_by=None,
    )


def _not_owner(known: Transaction | None, producer: Producer) -> ErrorCode:
    if known is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stored = known.stored
    if producer.producer_id not in (stored.owner.producer_id, stored.producer_id):
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if producer == stored.owner else ErrorCode.PRODUCER_FENCED


def _if_legal(stored: StoredTransaction, target: StoredTransaction) -> StoredTransaction | ErrorCode:
    """Another coordinator may have stored a state from which no move is legal."""
    return target if stored.state in LEGAL_PREVIOUS[target.state] else ErrorCode.UNKNOWN_SERVER_ERROR
