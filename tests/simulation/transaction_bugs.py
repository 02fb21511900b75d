"""Planted bugs of transactions: of their coordinator, of the logs and groups they write to, of the client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ottla.broker.coordinating import markers
from ottla.broker.coordinating.host import CoordinatorHost
from ottla.broker.coordinating.markers import MarkerSender
from ottla.broker.peers.links import LinkLost
from ottla.client.producing.transactions import Transactions
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.stored.transactions import OpenTransactions
from ottla.coordinator.shard import Answer, SendMarkers, Writes
from ottla.coordinator.txn import moves
from ottla.coordinator.txn.core import TransactionShard
from ottla.coordinator.txn.transaction import Transaction
from ottla.coordinator.txn.writes import End
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.storage.log.log import Log
from ottla.storage.producers.producers import Producers
from ottla.storage.producers.state import ProducerState
from simulation.planting import replaced

# The coordinator


def prepared_is_forgotten() -> Any:
    """A new coordinator does not finish what another one prepared."""

    def loaded(self: TransactionShard, now: Any) -> Any:
        effects = original(self, now)
        return [each for each in effects if not isinstance(each, SendMarkers)]

    original = TransactionShard.loaded
    return replaced(TransactionShard, "loaded", loaded)


def completed_before_its_markers() -> Any:
    """A transaction counts as completed when the first of its markers is written."""

    def marked(self: TransactionShard, entity: str, partitions: Iterable[TopicPartition], now: Any) -> Any:
        known = self.transactions.get(entity)
        return original(self, entity, set(known.unmarked) if known is not None else partitions, now)

    original = TransactionShard.marked
    return replaced(TransactionShard, "marked", marked)


def aborted_in_its_own_epoch() -> Any:
    """A time-out or a successor aborts a transaction without a new epoch (KAFKA-5231, KAFKA-6119)."""

    def fenced(stored: Any, wall_ms: int) -> Any:
        return replace(original(stored, wall_ms), epoch=stored.epoch)

    original = moves.fenced
    return replaced(moves, "fenced", fenced)


def epochs_stay() -> Any:
    """A producer that takes a transactional id over gets the epoch of the one before."""

    def initialise(known: Transaction | None, *arguments: Any, **more: Any) -> Any:
        planned = original(known, *arguments, **more)
        if isinstance(planned, ErrorCode) or known is None or planned.is_fence:
            return planned
        is_same = planned.target.producer_id == known.stored.producer_id and known.stored.epoch >= 0
        return (
            replace(planned, target=replace(planned.target, epoch=known.stored.epoch)) if is_same else planned
        )

    original = moves.initialise
    return replaced(moves, "initialise", initialise)


def anyone_may_end_it() -> Any:
    """The coordinator does not compare epochs (KAFKA-9600, and worse)."""

    def not_owner(known: Transaction | None, producer: Any) -> ErrorCode:
        found = original(known, producer)
        return ErrorCode.NONE if found is ErrorCode.PRODUCER_FENCED else found

    original = moves._not_owner
    return replaced(moves, "_not_owner", not_owner)


def nobody_takes_too_long() -> Any:
    """A transaction whose owner is gone stays open for ever."""
    return replaced(TransactionShard, "_set_timeout", lambda self, now, known: None)


def refused_is_done() -> Any:
    """A change that the log refused is answered as if it were stored."""

    def settled(self: TransactionShard, turn: Any, then: Any, error: ErrorCode) -> None:
        answered = len(turn.effects)
        original(self, turn, then, error)
        turn.effects[answered:] = [
            replace(each, response=ErrorCode.NONE)
            if isinstance(each, Answer) and isinstance(each.response, ErrorCode)
            else each
            for each in turn.effects[answered:]
        ]

    original = TransactionShard.settled
    return replaced(TransactionShard, "settled", settled)


def told_before_it_is_stored() -> Any:
    """EndTxn is answered, and its markers go out, before the outcome is in the log (ADR 0014)."""

    def begin(
        self: Any, turn: Any, entity: str, records: Any, then: Any, *arguments: Any, **more: Any
    ) -> None:
        original(self, turn, entity, records, then, *arguments, **more)
        if isinstance(then, End) and then.token is not None:
            turn.answer(then.token, ErrorCode.NONE)

    original = Writes.begin
    return replaced(Writes, "begin", begin)


# Markers


def lost_markers_are_not_repeated() -> Any:
    """Markers whose answer was lost are not sent again (KAFKA-6052)."""

    def answered(self: MarkerSender, broker: Any, queue: Any, answer: Any) -> None:
        if isinstance(answer, LinkLost):
            queue.sent.clear()
        original(self, broker, queue, answer)

    original = MarkerSender._answered
    return replaced(MarkerSender, "_answered", answered)


def strangers_need_no_marker() -> Any:
    """A broker that does not host the partition yet settles its marker (KAFKA-5610)."""
    settled = markers.SETTLED | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
    return replaced(markers, "SETTLED", settled)


def markers_stay_with_the_old_leader() -> Any:
    """A marker is sent to the broker that led its partition at first, whoever leads it later."""

    def leader(self: MarkerSender, marker: Any) -> Any:
        found = original(self, marker)
        return found if found is None else first.setdefault(marker, found)

    first: dict[Any, Any] = {}
    original = MarkerSender._leader
    return replaced(MarkerSender, "_leader", leader)


def early_markers_are_lost() -> Any:
    """A marker that comes while the group's offsets are loaded is not applied to them."""

    def on_marker(self: CoordinatorHost[Any], partition: Any, producer_id: int, *, is_commit: bool) -> None:
        led = self._led.get(partition.partition)
        if led is None or led.load is None:
            original(self, partition, producer_id, is_commit=is_commit)

    original = CoordinatorHost.on_marker
    return replaced(CoordinatorHost, "on_marker", on_marker)


# Groups


def open_offsets_are_told() -> Any:
    """An offset is told as stable while a transaction may change it."""
    return replaced(OpenTransactions, "is_waiting", lambda self, key: False)


def aborted_offsets_count() -> Any:
    """The offsets of an aborted transaction are committed."""

    def end(self: OpenTransactions, producer_id: int, *, is_commit: bool) -> Any:
        return original(self, producer_id, is_commit=True)

    original = OpenTransactions.end
    return replaced(OpenTransactions, "end", end)


def committed_offsets_are_lost() -> Any:
    """A group's coordinator does not hear of markers."""
    return replaced(GroupShard, "end_transaction", lambda self, producer_id, is_commit: None)


def zombies_commit_offsets() -> Any:
    """A member of an old generation may commit in a transaction (before KIP-447)."""

    def may_commit(group: Any, request: Any) -> ErrorCode:
        return ErrorCode.NONE if request.producer is not None else original(group, request)

    original = Offsets._may_commit
    return replaced(Offsets, "_may_commit", staticmethod(may_commit))


# The log


def stable_means_replicated() -> Any:
    """Readers of committed records are given all that is replicated."""
    return replaced(Log, "last_stable_offset", property(lambda self: self.high_watermark))


def nothing_was_aborted() -> Any:
    """Readers are not told which transactions were aborted (KAFKA-5376)."""
    return replaced(Log, "aborted_transactions", lambda self, *arguments: [])


def unreplicated_markers_count() -> Any:
    """A transaction has ended for readers before its marker is replicated (KAFKA-9807)."""

    def first_unstable_offset(self: ProducerState, high_watermark: int) -> int | None:
        return min(self._open_transactions, default=None)

    return replaced(ProducerState, "first_unstable_offset", first_unstable_offset)


def snapshots_forget_open_transactions() -> Any:
    """A log that is opened again has no open transactions."""

    def restore(self: ProducerState, producer_id: int, producer: Any) -> None:
        producer.txn_first_offset = -1
        original(self, producer_id, producer)

    original = ProducerState.restore
    return replaced(ProducerState, "restore", restore)


def old_epochs_write() -> Any:
    """A leader takes batches and markers of epochs that were fenced."""

    def refuse_batch(self: ProducerState, header: Any, origin: Any) -> int:
        code = original(self, header, origin)
        return 0 if code == int(ErrorCode.INVALID_PRODUCER_EPOCH) else code

    original = ProducerState.refuse_batch
    return replaced(ProducerState, "refuse_batch", refuse_batch)


def deposed_coordinators_mark() -> Any:
    """A leader takes the markers of a coordinator that was replaced."""

    def refuse_marker(self: ProducerState, header: Any, marker: Any) -> int:
        code = original(self, header, marker)
        return 0 if code == int(ErrorCode.TRANSACTION_COORDINATOR_FENCED) else code

    original = ProducerState.refuse_marker
    return replaced(ProducerState, "refuse_marker", refuse_marker)


def late_batches_are_taken() -> Any:
    """A leader does not ask whether a batch belongs to an open transaction (before KIP-890)."""

    def judge(self: Producers, header: Any, marker: Any, origin: Any, verification: Any, *more: Any) -> Any:
        return original(self, header, marker, origin, verification, False, *more[1:])

    original = Producers.judge
    return replaced(Producers, "judge", judge)


def verified_for_ever() -> Any:
    """A marker between the question and the batch does not make the answer void (KAFKA-14884)."""

    def wrote_marker(self: ProducerState, header: Any, marker: Any) -> Any:
        kept = dict(self._verifications)
        found = original(self, header, marker)
        self._verifications = kept
        return found

    original = ProducerState.wrote_marker
    return replaced(ProducerState, "wrote_marker", wrote_marker)


# Ottla's client


def committed_before_it_is_sent() -> Any:
    """A producer asks to commit while records are on their way."""

    def commit(self: Transactions) -> Any:
        flush = self._sending.flush
        self._sending.flush = _nothing  # type: ignore[method-assign]
        try:
            yield from original(self)
        finally:
            self._sending.flush = flush  # type: ignore[method-assign]

    original = Transactions.commit
    return replaced(Transactions, "commit", commit)


def _nothing() -> Any:
    return
    yield


def failures_are_committed() -> Any:
    """A record that could not be delivered does not keep its transaction from being committed."""
    return replaced(Transactions, "delivery_failed", lambda self, error, was_sent: None)
