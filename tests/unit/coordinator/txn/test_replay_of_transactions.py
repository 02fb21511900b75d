"""Whatever happens to a shard, replaying the committed records gives the state that it has."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.areas import TransactionsConfig
from ottla.coordinator.shard import Answer, Append, Effect, Moment, Producer, SendMarkers, StoredRecord
from ottla.coordinator.txn.core import TransactionShard
from ottla.coordinator.txn.states import LEGAL_PREVIOUS, PREPARED, TransactionState
from ottla.coordinator.txn.transaction import NO_TIMEOUT_MS, StoredTransaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.init_producer_id import InitProducerIdResponse

IDS = ("a", "b")
PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0))
TIMEOUT_MS = 8_000
CONFIG = TransactionsConfig(
    transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000,
    transaction_remove_expired_transaction_cleanup_interval_ms=20_000,
    transactional_id_expiration_ms=30_000,
)


class History:
    """One shard, its log, and producers that do as they please. Appends wait until a step settles them."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.log: list[StoredRecord] = []
        self.appends: list[Append] = []
        self.markers: dict[str, SendMarkers] = {}
        self.owners: dict[str, Producer] = {}
        self.asked: dict[int, str] = {}
        self.tokens = itertools.count(1)
        self.producer_ids = itertools.count(1)
        self.epochs: dict[str, list[Producer]] = {}
        self.shard = self.replayed()
        self.perform(self.shard.loaded(self.now))

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def token(self, name: str) -> int:
        token = next(self.tokens)
        self.asked[token] = name
        return token

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answer():
                    self.hear(self.asked.pop(effect.token), effect.response)
                case Append():
                    self.appends.append(effect)
                case SendMarkers():
                    self.markers[effect.transactional_id] = effect

    def hear(self, name: str, response: InitProducerIdResponse | ErrorCode) -> None:
        if isinstance(response, InitProducerIdResponse) and response.error_code == 0:
            given_out = Producer(response.producer_id, response.producer_epoch)
            self.owners[name] = given_out
            self.epochs.setdefault(name, []).append(given_out)

    def replayed(self) -> TransactionShard:
        shard = TransactionShard(CONFIG, lambda: next(self.producer_ids))
        shard.apply(self.log)
        return shard

    # -- steps -------------------------------------------------------------------------------

    def init(self, name: str, tp: TopicPartition) -> None:
        self.perform(self.shard.initialise(self.token(name), name, None, TIMEOUT_MS, self.now))

    def reinit(self, name: str, tp: TopicPartition) -> None:
        owner = self.owners.get(name)
        self.perform(self.shard.initialise(self.token(name), name, owner, TIMEOUT_MS, self.now))

    def prepare(self, name: str, tp: TopicPartition) -> None:
        owner = self.owners.get(name)
        self.keep(name, owner, NO_TIMEOUT_MS)

    def resume(self, name: str, tp: TopicPartition) -> None:
        self.keep(name, None, TIMEOUT_MS)

    def keep(self, name: str, owner: Producer | None, timeout_ms: int) -> None:
        self.perform(self.shard.initialise(self.token(name), name, owner, timeout_ms, self.now, keeps=True))

    def add(self, name: str, tp: TopicPartition) -> None:
        owner = self.owners.get(name, Producer(1, 0))
        self.perform(self.shard.add_partitions(self.token(name), name, owner, [tp], self.now))

    def commit(self, name: str, tp: TopicPartition) -> None:
        self.end(name, is_commit=True)

    def abort(self, name: str, tp: TopicPartition) -> None:
        self.end(name, is_commit=False)

    def end(self, name: str, *, is_commit: bool) -> None:
        owner = self.owners.get(name, Producer(1, 0))
        self.perform(self.shard.end(self.token(name), name, owner, self.now, is_commit=is_commit))

    def mark_one(self, name: str, tp: TopicPartition) -> None:
        if name in self.markers and tp in self.markers[name].partitions:
            self.perform(self.shard.marked(name, [tp], self.now))

    def mark_all(self, name: str, tp: TopicPartition) -> None:
        if name in self.markers:
            self.perform(self.shard.marked(name, self.markers.pop(name).partitions, self.now))

    def settle(self, name: str, tp: TopicPartition) -> None:
        if self.appends:
            self.settle_first(ErrorCode.NONE)

    def settle_all(self, name: str, tp: TopicPartition) -> None:
        while self.appends:
            self.settle_first(ErrorCode.NONE)

    def refuse(self, name: str, tp: TopicPartition) -> None:
        if self.appends:
            self.settle_first(ErrorCode.NOT_ENOUGH_REPLICAS)

    def settle_first(self, error: ErrorCode) -> None:
        append = self.appends.pop(0)
        if error is ErrorCode.NONE:
            self.log.extend(append.records)
        self.perform(self.shard.appended(append.ticket, error, self.now))

    def wait(self, name: str, tp: TopicPartition) -> None:
        self.advance(300)

    def wait_for_timeout(self, name: str, tp: TopicPartition) -> None:
        self.advance(TIMEOUT_MS + 1_000)

    def wait_for_expiry(self, name: str, tp: TopicPartition) -> None:
        self.advance(51_000)

    def advance(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.perform(self.shard.tick(self.now))
        self.now_ms = until_ms

    def move(self, name: str, tp: TopicPartition) -> None:
        self.perform(self.shard.unload(self.now))
        self.appends.clear()
        self.markers.clear()
        self.shard = self.replayed()
        for _ in self.shard.restore():
            pass
        self.perform(self.shard.loaded(self.now))

    def finish(self) -> None:
        """The log accepts every record, every marker is written, and what is prepared is decided."""
        for wait_ms in (200, 200, TIMEOUT_MS + 1_000, 200, 200, 200, 200):
            for name in IDS:
                if name in self.prepared():
                    self.resume(name, PARTITIONS[0])
                    self.settle_all(name, PARTITIONS[0])
                    self.end(name, is_commit=True)
                self.settle_all(name, PARTITIONS[0])
                self.mark_all(name, PARTITIONS[0])
            self.advance(wait_ms)

    def prepared(self) -> dict[str, StoredTransaction]:
        return {
            name: known.stored for name, known in self.shard.transactions.items() if known.stored.is_prepared
        }


def stored_state(shard: TransactionShard) -> dict[str, StoredTransaction]:
    return {name: known.stored for name, known in shard.transactions.items()}


Step = Callable[[History, str, TopicPartition], None]
OFTEN: list[Step] = [
    History.add,
    History.commit,
    History.settle_all,
    History.mark_all,
    History.init,
    History.settle,
]
SELDOM: list[Step] = [
    History.reinit,
    History.prepare,
    History.resume,
    History.abort,
    History.mark_one,
    History.refuse,
    History.wait,
    History.wait_for_timeout,
    History.wait_for_expiry,
    History.move,
]
STEPS = st.lists(
    st.tuples(st.sampled_from(OFTEN * 3 + SELDOM), st.sampled_from(IDS), st.sampled_from(PARTITIONS)),
    min_size=10,
    max_size=60,
)
Steps = list[tuple[Step, str, TopicPartition]]


@settings(max_examples=200)
@given(steps=STEPS)
def test_replaying_the_committed_records_gives_the_live_state(steps: Steps) -> None:
    history = History()
    for step, name, tp in steps:
        step(history, name, tp)

        assert stored_state(history.replayed()) == stored_state(history.shard)
        assert all(sum(map(len, history.shard.writes.targets(name).values())) <= 1 for name in IDS)


@settings(max_examples=100)
@given(steps=STEPS)
def test_ids_and_epochs_rise(steps: Steps) -> None:
    history = History()
    for step, name, tp in steps:
        step(history, name, tp)

    for given_out in history.epochs.values():
        assert given_out == sorted(given_out)


@settings(max_examples=100)
@given(steps=STEPS)
def test_in_the_log_every_move_is_legal(steps: Steps) -> None:
    history = History()
    for step, name, tp in steps:
        step(history, name, tp)

    shard = TransactionShard(CONFIG, lambda: None)
    states: dict[str, TransactionState] = {}
    for record in history.log:
        shard.apply([record])
        for name in IDS:
            known = shard.transactions.get(name)
            if known is None:
                states.pop(name, None)
                continue
            before = states.get(name, TransactionState.EMPTY)
            assert before is known.stored.state or before in LEGAL_PREVIOUS[known.stored.state]
            states[name] = known.stored.state


ASKED_FOR = {History.init, History.reinit, History.commit, History.abort}


@settings(max_examples=200)
@given(steps=STEPS)
def test_a_prepared_transaction_waits_until_somebody_decides(steps: Steps) -> None:
    """Time, moves of the coordinator, refused writes and new owners leave it alone."""
    history = History()
    asked: set[str] = set()
    for step, name, tp in steps:
        before = history.prepared()
        if step in ASKED_FOR:
            asked.add(name)
        step(history, name, tp)

        for kept in before.keys() - asked:
            now = history.shard.transactions[kept].stored
            assert now.is_prepared
            assert now.producer == before[kept].producer
            assert before[kept].partitions <= now.partitions
            if before[kept].resumed_by is not None:
                assert now.partitions == before[kept].partitions
        asked = {each for each in asked if history.shard.is_pending(each) or each == name}


@settings(max_examples=100)
@given(steps=STEPS)
def test_every_transaction_ends(steps: Steps) -> None:
    history = History()
    for step, name, tp in steps:
        step(history, name, tp)

    history.finish()

    for known in history.shard.transactions.values():
        assert known.stored.state not in PREPARED | {TransactionState.ONGOING}
    assert not history.asked
