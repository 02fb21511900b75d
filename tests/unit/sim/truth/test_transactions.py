"""What may not happen to transactions is seen: each check has its broken promise here."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.records import state_record
from ottla.coordinator.txn.states import TransactionState
from ottla.coordinator.txn.transaction import StoredTransaction
from ottla.model.ids import TopicPartition
from ottla.sim.truth.contents import Mark, Settled
from ottla.sim.truth.decisions import check_marks, decisions_in
from ottla.sim.truth.history import Found, History, Sent, Violation
from ottla.sim.truth.transactions import Attempt, Phase, TransactionTruth, check_copies

P0, P1 = TopicPartition("written-0", 0), TopicPartition("written-0", 1)


def wrote(truth: TransactionTruth, *partitions: TopicPartition) -> Attempt:
    attempt = truth.began("writer")
    for order, partition in enumerate(partitions):
        truth.will_write(attempt, Sent(b"%d|" % order, "writer", order, partition))
    return attempt


def stands(attempt: Attempt, *outcomes: bool | None) -> dict[TopicPartition, list[Settled]]:
    logs: dict[TopicPartition, list[Settled]] = {P0: [], P1: []}
    for sent, outcome in zip(attempt.sent, outcomes, strict=True):
        logs[sent.partition].append(Settled(len(logs[sent.partition]), None, sent.value, outcome))
    return logs


@pytest.fixture
def truth() -> TransactionTruth:
    return TransactionTruth(History())


@pytest.mark.parametrize(
    ("phase", "outcomes"),
    [
        (Phase.COMMITTED, (True, True)),
        (Phase.COMMITTING, (True, True)),
        (Phase.COMMITTING, (False, False)),
        (Phase.ABORTED, (False, False)),
        (Phase.OPEN, (False, False)),
    ],
)
def test_all_or_nothing_is_right(truth: TransactionTruth, phase: Phase, outcomes: tuple[bool, bool]) -> None:
    attempt = wrote(truth, P0, P1)
    attempt.phase = phase

    truth.check(stands(attempt, *outcomes))


@pytest.mark.parametrize(
    ("phase", "outcomes", "kind"),
    [
        (Phase.COMMITTED, (True, False), "lost commit"),
        (Phase.COMMITTED, (False, False), "lost commit"),
        (Phase.COMMITTING, (True, False), "torn"),
        (Phase.ABORTED, (True, True), "unasked"),
        (Phase.OPEN, (True, True), "unasked"),
        (Phase.COMMITTING, (True, None), "hanging"),
    ],
)
def test_anything_else_is_not(
    truth: TransactionTruth, phase: Phase, outcomes: tuple[bool | None, ...], kind: str
) -> None:
    attempt = wrote(truth, P0, P1)
    attempt.phase = phase

    with pytest.raises(Violation, match=kind):
        truth.check(stands(attempt, *outcomes))


def test_where_records_were_lost_nothing_is_asked(truth: TransactionTruth) -> None:
    attempt = wrote(truth, P0, P1)
    attempt.phase = Phase.COMMITTED
    truth.history.unclean.add(P1)

    truth.check(stands(attempt, True, False))


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.ABORTED])
def test_a_dirty_read(truth: TransactionTruth, phase: Phase) -> None:
    attempt = wrote(truth, P0)
    attempt.phase = phase

    with pytest.raises(Violation, match="dirty read"):
        truth.was_read(P0, 0, attempt.sent[0].value, "reader")


@pytest.mark.parametrize("phase", [Phase.COMMITTING, Phase.COMMITTED])
def test_a_read_that_is_none(truth: TransactionTruth, phase: Phase) -> None:
    attempt = wrote(truth, P0)
    attempt.phase = phase

    truth.was_read(P0, 0, attempt.sent[0].value, "reader")


def test_an_epoch_given_twice(truth: TransactionTruth) -> None:
    truth.epoch_given((7, 0), "id", "a")
    truth.epoch_given((7, 0), "id", "a")
    truth.epoch_given((7, 1), "id", "b")

    with pytest.raises(Violation, match="epoch 1 of producer 7"):
        truth.epoch_given((7, 1), "id", "c")


def test_a_producer_id_of_two_transactional_ids(truth: TransactionTruth) -> None:
    truth.epoch_given((7, 0), "one", "a")

    with pytest.raises(Violation, match="producer 7"):
        truth.epoch_given((7, 1), "other", "b")


def copies(*values: bytes) -> list[Settled]:
    return [Settled(at, None, b"copier/%d|" % at + value) for at, value in enumerate(values)]


ABORTED = Settled(9, None, b"copier/9|a", is_committed=False)


def test_copies_of_everything_in_its_order() -> None:
    source = [Settled(0, None, b"a"), Settled(1, None, b"x", is_committed=False), Settled(2, None, b"b")]

    check_copies(source, [ABORTED, *copies(b"a", b"b")], P0)


@pytest.mark.parametrize("found", [(), (b"a",), (b"a", b"a", b"b"), (b"b", b"a"), (b"a", b"b", b"b")])
def test_any_other_copies(found: tuple[bytes, ...]) -> None:
    with pytest.raises(Violation, match="copied wrongly"):
        check_copies([Settled(0, None, b"a"), Settled(1, None, b"b")], [*copies(*found), ABORTED], P0)


# Decisions


def stored(*states: tuple[TransactionState, int]) -> list[Found]:
    found = []
    for offset, (state, epoch) in enumerate(states):
        partitions = frozenset({P0, P1}) if TransactionState.ONGOING <= state <= 3 else frozenset()
        record = state_record("id", StoredTransaction(7, epoch, 1, state, 1, 1, partitions))
        found.append(Found(offset, record.key, record.value or b""))
    return found


S = TransactionState
COMMIT, ABORT = Mark(7, 0, is_commit=True), Mark(7, 1, is_commit=False)
TWO = stored(
    *((S.EMPTY, 0), (S.ONGOING, 0), (S.PREPARE_COMMIT, 0), (S.COMPLETE_COMMIT, 0)),
    *((S.ONGOING, 0), (S.PREPARE_ABORT, 1), (S.COMPLETE_ABORT, 1)),
)


def test_markers_as_decided_once_or_repeated() -> None:
    check_marks(decisions_in(TWO), {P0: [COMMIT, ABORT], P1: [COMMIT, COMMIT, ABORT]})


@pytest.mark.parametrize("marks", [[], [COMMIT], [ABORT, COMMIT], [COMMIT, ABORT, COMMIT], [COMMIT, COMMIT]])
def test_markers_that_nobody_decided_or_that_are_missing(marks: list[Mark]) -> None:
    with pytest.raises(Violation, match="differ from what was decided"):
        check_marks(decisions_in(TWO), {P0: [COMMIT, ABORT], P1: marks})


def test_a_record_whose_append_failed_decides_nothing() -> None:
    records = stored((S.PREPARE_COMMIT, 0), (S.PREPARE_ABORT, 1), (S.COMPLETE_ABORT, 1))

    check_marks(decisions_in(records), {P0: [ABORT]})


def test_a_completion_that_was_written_again_counts_once() -> None:
    records = stored((S.PREPARE_COMMIT, 0), (S.COMPLETE_COMMIT, 0), (S.COMPLETE_COMMIT, 0))

    assert len(decisions_in(records)) == 1


@pytest.mark.parametrize("outcome", [(S.COMPLETE_ABORT, 0), (S.COMPLETE_COMMIT, 1)])
def test_an_outcome_that_was_not_prepared(outcome: tuple[S, int]) -> None:
    with pytest.raises(Violation, match="had not been prepared so"):
        decisions_in(stored((S.PREPARE_COMMIT, 0), (S.COMPLETE_COMMIT, 0), outcome))


def test_an_outcome_other_than_the_one_that_was_prepared() -> None:
    with pytest.raises(Violation, match="had not been prepared so"):
        decisions_in(stored((S.PREPARE_COMMIT, 0), (S.COMPLETE_ABORT, 0)))


def test_a_transaction_that_stays_prepared() -> None:
    with pytest.raises(Violation, match="stuck"):
        decisions_in(stored((S.ONGOING, 0), (S.PREPARE_COMMIT, 0)))
