"""One partition of ``__transaction_state``: its transactional ids and all requests to them."""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import assert_never

from ottla.config.areas import TransactionsConfig
from ottla.coordinator.shard import (
    Answer,
    Effect,
    KeyAndValue,
    Moment,
    PreparedHandedOver,
    Producer,
    SendMarkers,
    Shard,
    StoredRecord,
    TransactionFenced,
    Turn,
)
from ottla.coordinator.timers import Due, Timers
from ottla.coordinator.txn import moves
from ottla.coordinator.txn.parked import PARKED_MAX_MS, Adding, Initialising, Parked, Parking
from ottla.coordinator.txn.records import read_state, state_record, tombstone
from ottla.coordinator.txn.states import IDLE, PREPARED, TransactionState
from ottla.coordinator.txn.transaction import NO_EPOCH, StoredTransaction, Transaction
from ottla.coordinator.txn.writes import AddPartitions, Complete, End, Expire, Initialise, TransactionWrite
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.stored import decode_transaction_key

IDS_PER_PORTION = 500
"""How many transactional ids are restored, expired or freed before others get their turn."""

PORTION_PAUSE_MS = 1

COMPLETE_AGAIN_MS = 100
"""The pause before the end of a transaction is written again that the log refused."""

APPEND_ERRORS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error code that the client gets when its record cannot be written."""


OVERDUE = "it took longer than its time-out"
REPLACED = "another producer took the transactional id over"


class TimerKind(IntEnum):
    """Which deadline has passed."""

    TIMEOUT = 0
    COMPLETE = 1
    EXPIRY = 2
    PARKED = 3


class TransactionShard(Shard[TransactionWrite]):
    """The transactional ids of one partition.

    InitProducerId is answered with its response, the other requests with an error code, which the host puts
    into the response of the request's version.
    """

    def __init__(self, config: TransactionsConfig, new_producer_id: Callable[[], int | None]) -> None:
        super().__init__()
        self.transactions: dict[str, Transaction] = {}
        self.prepared: dict[str, StoredTransaction] = {}
        """Those that wait for somebody else's decision."""
        self._config = config
        self._new_producer_id = new_producer_id
        self._timers = Timers()
        self._parking = Parking()
        self._unreadable = 0
        self._to_expire: list[str] = []

    # -- requests ----------------------------------------------------------------------------

    def initialise(
        self,
        token: int,
        transactional_id: str,
        owner: Producer | None,
        timeout_ms: int,
        now: Moment,
        *,
        keeps: bool = False,
    ) -> list[Effect]:
        """InitProducerId; ``owner`` is the id and epoch that the client had before, if it had any.

        ``keeps`` leaves a transaction open that is; ``timeout_ms`` is ``NO_TIMEOUT_MS`` for two-phase commit.
        """
        turn = Turn(now)
        asked = Initialising(token, owner, timeout_ms, now.monotonic_ms + PARKED_MAX_MS, keeps)
        self._initialise(turn, transactional_id, asked)
        return turn.effects

    def _initialise(self, turn: Turn, transactional_id: str, asked: Initialising) -> None:
        planned = moves.initialise(
            self.transactions.get(transactional_id),
            asked.owner,
            asked.timeout_ms,
            self._new_producer_id,
            turn.now.wall_ms,
            is_pending=self.is_pending(transactional_id),
            keeps=asked.keeps,
        )
        if not isinstance(planned, ErrorCode):
            then = Initialise(asked.token, transactional_id, planned)
            self._write(turn, transactional_id, planned.target, then)
        elif not self._parks(turn, transactional_id, asked, planned):
            turn.answer(asked.token, init_refused(planned))

    def add_partitions(
        self,
        token: int,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        now: Moment,
    ) -> list[Effect]:
        """AddPartitionsToTxn, and AddOffsetsToTxn with the group's partition."""
        turn = Turn(now)
        asked = Adding(token, producer, tuple(partitions), now.monotonic_ms + PARKED_MAX_MS)
        self._add_partitions(turn, transactional_id, asked)
        return turn.effects

    def _add_partitions(self, turn: Turn, transactional_id: str, asked: Adding) -> None:
        target = moves.add_partitions(
            self.transactions.get(transactional_id),
            asked.producer,
            asked.partitions,
            turn.now.wall_ms,
            is_pending=self.is_pending(transactional_id),
        )
        if not isinstance(target, ErrorCode):
            self._write(turn, transactional_id, target, AddPartitions(asked.token, transactional_id))
        elif not self._parks(turn, transactional_id, asked, target):
            turn.answer(asked.token, target)

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether a broker may write to partitions: one error code each."""
        return moves.verify(self.transactions.get(transactional_id), producer, partitions)

    def end(
        self, token: int, transactional_id: str, producer: Producer, now: Moment, *, is_commit: bool
    ) -> list[Effect]:
        """EndTxn: answered when the outcome is stored, before any marker."""
        turn = Turn(now)
        target = moves.end(
            self.transactions.get(transactional_id),
            producer,
            now.wall_ms,
            is_commit=is_commit,
            is_pending=self.is_pending(transactional_id),
        )
        if isinstance(target, ErrorCode):
            turn.answer(token, target)
        else:
            self._write(turn, transactional_id, target, End(transactional_id, token))
        return turn.effects

    def marked(self, entity: str, partitions: Iterable[TopicPartition], now: Moment) -> list[Effect]:
        turn = Turn(now)
        known = self.transactions.get(entity)
        if known is not None and known.unmarked:
            known.unmarked.difference_update(partitions)
            if not known.unmarked:
                self._complete(turn, known)
        return turn.effects

    # -- requests that wait ------------------------------------------------------------------

    def _parks(self, turn: Turn, transactional_id: str, asked: Parked, error: ErrorCode) -> bool:
        """Whether a request waits for the markers of the transaction before."""
        known = self.transactions.get(transactional_id)
        is_ending = known is not None and known.stored.state in PREPARED
        is_concurrent = error is ErrorCode.CONCURRENT_TRANSACTIONS
        if not is_ending or not is_concurrent or asked.until_ms <= turn.now.monotonic_ms:
            return False
        self._parking.add(transactional_id, asked)
        self._timers.at(asked.until_ms, TimerKind.PARKED, transactional_id)
        return True

    def _ask_again(self, turn: Turn, transactional_id: str, waiting: Iterable[Parked]) -> None:
        for asked in waiting:
            if isinstance(asked, Adding):
                self._add_partitions(turn, transactional_id, asked)
            else:
                self._initialise(turn, transactional_id, asked)

    def is_pending(self, transactional_id: str) -> bool:
        """Whether a change is under way: a record towards the log, or markers."""
        known = self.transactions.get(transactional_id)
        is_prepared = known is not None and known.stored.state in PREPARED
        return is_prepared or bool(self.writes.targets(transactional_id))

    # -- writing -----------------------------------------------------------------------------

    def _write(
        self, turn: Turn, transactional_id: str, target: StoredTransaction, then: TransactionWrite
    ) -> None:
        """A client waits as long as its transaction may last, as in Kafka, but not for ever."""
        self.writes.begin(
            turn,
            transactional_id,
            (state_record(transactional_id, target),),
            then,
            f"{target.state.shown} of {transactional_id}",
            timeout_ms=min(target.timeout_ms, self._config.transaction_max_timeout_ms),
        )

    def settled(self, turn: Turn, then: TransactionWrite, error: ErrorCode) -> None:
        match then:
            case Initialise():
                self._initialised(turn, then, error)
            case AddPartitions():
                self._added(turn, then, error)
            case End():
                if then.token is not None:
                    turn.answer(then.token, APPEND_ERRORS.get(error, error))
                elif error is ErrorCode.NONE:
                    self.transactions[then.transactional_id].last_epoch = NO_EPOCH
                    self._tell_fenced(turn, then.transactional_id, then.fenced, OVERDUE)
                self._prepared(turn, then.transactional_id, error)
            case Complete():
                if error is ErrorCode.NONE:
                    self._ask_again(turn, then.transactional_id, self._parking.take(then.transactional_id))
                else:
                    again_ms = turn.now.monotonic_ms + COMPLETE_AGAIN_MS
                    self._timers.at(again_ms, TimerKind.COMPLETE, then.transactional_id)
            case Expire():
                pass
            case _:
                assert_never(then)

    def _initialised(self, turn: Turn, then: Initialise, error: ErrorCode) -> None:
        target, owner = then.planned.target, then.planned.target.owner
        if error is not ErrorCode.NONE:
            turn.answer(then.token, init_refused(APPEND_ERRORS.get(error, error)))
        elif then.planned.is_fence:
            turn.answer(then.token, init_refused(ErrorCode.CONCURRENT_TRANSACTIONS))
        else:
            answer = InitProducerIdResponse(producer_id=owner.producer_id, producer_epoch=owner.epoch)
            if then.planned.keeps_open:
                answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch = target.producer
            turn.answer(then.token, answer)
        known = self.transactions.get(then.transactional_id)
        if known is not None and error is ErrorCode.NONE:
            known.last_producer_id = then.planned.last_producer_id
            known.last_epoch = then.planned.last_epoch
        if then.planned.is_fence:
            if error is ErrorCode.NONE:
                self._tell_fenced(turn, then.transactional_id, then.planned.fenced, REPLACED)
            self._prepared(turn, then.transactional_id, error)

    @staticmethod
    def _tell_fenced(turn: Turn, transactional_id: str, fenced: StoredTransaction | None, cause: str) -> None:
        if fenced is not None:
            told = TransactionFenced(
                transactional_id, fenced.owner, cause, fenced.start_ms, fenced.partitions
            )
            turn.effects.append(told)

    def _added(self, turn: Turn, then: AddPartitions, error: ErrorCode) -> None:
        turn.answer(then.token, APPEND_ERRORS.get(error, error))
        known = self.transactions.get(then.transactional_id)
        if known is not None and error is ErrorCode.NONE:
            known.shown_start_ms = known.stored.start_ms
            self._set_timeout(turn.now, known)

    def _prepared(self, turn: Turn, transactional_id: str, error: ErrorCode) -> None:
        """An outcome is stored: send its markers. If it is not, the transaction stays open."""
        known = self.transactions[transactional_id]
        if error is ErrorCode.NONE:
            self._send_markers(turn, known)
        else:
            self._set_timeout(turn.now, known)

    def _send_markers(self, turn: Turn, known: Transaction) -> None:
        stored = known.stored
        known.unmarked = set(stored.partitions)
        if not known.unmarked:
            self._complete(turn, known)
            return
        is_commit = stored.state is TransactionState.PREPARE_COMMIT
        turn.effects.append(
            SendMarkers(known.transactional_id, stored.producer, is_commit, stored.partitions)
        )

    def _complete(self, turn: Turn, known: Transaction) -> None:
        target = moves.completed(known.stored, turn.now.wall_ms)
        self._write(turn, known.transactional_id, target, Complete(known.transactional_id))

    # -- stored state ------------------------------------------------------------------------

    @property
    def entity_count(self) -> int:
        return len(self.transactions)

    @property
    def unreadable(self) -> int:
        return self._unreadable

    def apply(self, records: Iterable[KeyAndValue], producer_id: int | None = None) -> None:
        """Nobody writes here in a transaction; such records count like others, as in Kafka."""
        for key, value in records:
            if key is not None:
                self._apply(StoredRecord(key, value))

    def _apply(self, record: StoredRecord) -> None:
        try:
            key = decode_transaction_key(record.key)
            stored = None if record.value is None else read_state(record.value)
        except MalformedRequest:
            self._unreadable += 1
            return
        if key is None:
            self._unreadable += 1
            return
        self.prepared.pop(key.transactional_id, None)
        if stored is not None and stored.is_prepared:
            self.prepared[key.transactional_id] = stored
        if stored is None or stored.state is TransactionState.DEAD:
            self.transactions.pop(key.transactional_id, None)
        elif key.transactional_id in self.transactions:
            self.transactions[key.transactional_id].stored = stored
        else:
            self.transactions[key.transactional_id] = Transaction(key.transactional_id, stored)

    def restore(self) -> Iterator[None]:
        for number, known in enumerate(self.transactions.values(), start=1):
            known.shown_start_ms = known.stored.start_ms
            if number % IDS_PER_PORTION == 0:
                yield

    # -- time --------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        return self._timers.next_deadline_ms()

    def tick(self, now: Moment) -> list[Effect]:
        turn = Turn(now)
        while (due := self._timers.pop_due(now.monotonic_ms)) is not None:
            known = self.transactions.get(due.entity)
            if due.kind == TimerKind.EXPIRY:
                self._expire_portion(turn)
            elif due.kind == TimerKind.PARKED:
                overdue = self._parking.take_overdue(due.entity, now.monotonic_ms)
                self._ask_again(turn, due.entity, overdue)
            elif known is None:
                continue
            elif due.kind == TimerKind.TIMEOUT:
                self._on_timeout(turn, known, due)
            elif known.stored.state in PREPARED and not known.unmarked:
                self._complete(turn, known)
        return turn.effects

    def _set_timeout(self, now: Moment, known: Transaction) -> None:
        """Time-outs are looked at when a whole interval has passed, as in Kafka."""
        interval_ms = self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        left_ms = max(0, known.stored.start_ms + known.stored.timeout_ms - now.wall_ms)
        at_ms = ((now.monotonic_ms + left_ms) // interval_ms + 1) * interval_ms
        if known.timer_at_ms is None or at_ms < known.timer_at_ms:
            known.timer_at_ms = at_ms
            self._timers.at(at_ms, TimerKind.TIMEOUT, known.transactional_id)

    def _on_timeout(self, turn: Turn, known: Transaction, due: Due) -> None:
        if known.timer_at_ms != due.deadline_ms:
            return
        known.timer_at_ms = None
        stored = known.stored
        if stored.state is not TransactionState.ONGOING or stored.is_prepared:
            return
        is_over = stored.start_ms + stored.timeout_ms < turn.now.wall_ms
        if is_over and not self.is_pending(known.transactional_id):
            target = moves.fenced(stored, turn.now.wall_ms)
            self._write(turn, known.transactional_id, target, End(known.transactional_id, None, stored))
        else:
            self._set_timeout(turn.now, known)

    def _schedule_expiry(self, now: Moment) -> None:
        """At fixed times, so that a shard that moves often still expires its ids."""
        interval_ms = self._config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timers.at((now.monotonic_ms // interval_ms + 1) * interval_ms, TimerKind.EXPIRY)

    def _expire_portion(self, turn: Turn) -> None:
        if not self._to_expire:
            self._to_expire = list(self.transactions)
        for _ in range(min(IDS_PER_PORTION, len(self._to_expire))):
            self._expire(turn, self._to_expire.pop())
        if self._to_expire:
            self._timers.at(turn.now.monotonic_ms + PORTION_PAUSE_MS, TimerKind.EXPIRY)
        else:
            self._schedule_expiry(turn.now)

    def _expire(self, turn: Turn, transactional_id: str) -> None:
        known = self.transactions.get(transactional_id)
        if known is None or known.stored.state not in IDLE or self.is_pending(transactional_id):
            return
        if known.stored.last_update_ms <= turn.now.wall_ms - self._config.transactional_id_expiration_ms:
            record = tombstone(transactional_id)
            self.writes.begin(turn, transactional_id, (record,), Expire(), f"{transactional_id} expired")

    # -- begin and end -----------------------------------------------------------------------

    def loaded(self, now: Moment) -> list[Effect]:
        """Finish what another coordinator prepared; open transactions keep the time that they have left."""
        turn = Turn(now)
        for known in list(self.transactions.values()):
            if known.stored.state in PREPARED:
                self._send_markers(turn, known)
            elif known.stored.state is TransactionState.ONGOING:
                self._set_timeout(now, known)
        self._schedule_expiry(now)
        return turn.effects

    def unload(self, now: Moment) -> list[Effect]:
        effects = super().unload(now)
        if self.prepared:
            effects.append(PreparedHandedOver(tuple(self.prepared)))
        self._timers.clear()
        for asked in self._parking.take_all():
            refused = ErrorCode.NOT_COORDINATOR
            answer = refused if isinstance(asked, Adding) else init_refused(refused)
            effects.append(Answer(asked.token, answer))
        return effects

    def free_some(self) -> bool:
        for _ in range(min(IDS_PER_PORTION, len(self.transactions))):
            self.transactions.popitem()
        return bool(self.transactions)


def init_refused(error: ErrorCode) -> InitProducerIdResponse:
    """A refused InitProducerId."""
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
