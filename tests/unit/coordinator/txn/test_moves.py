"""Every state of a transaction, every request, every answer: one row each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.coordinator.shard import Producer
from ottla.coordinator.txn import moves
from ottla.coordinator.txn.moves import Initialisation
from ottla.coordinator.txn.states import COMPLETE_OF, LEGAL_PREVIOUS, PREPARED, TransactionState
from ottla.coordinator.txn.transaction import NO_TIMEOUT_MS, StoredTransaction, Transaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

S = TransactionState
E = ErrorCode
T_0, T_1 = TopicPartition("t", 0), TopicPartition("t", 1)
OWNER = Producer(7, 3)
NOW_MS = 9_000
NEW_ID = 500

STORED = StoredTransaction(7, 3, 60_000, S.EMPTY, 1_000)
WITH_PARTITIONS = {S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.PREPARE_EPOCH_FENCE}


def a_transaction(state: TransactionState, epoch: int = 3, **live: int) -> Transaction:
    partitions = frozenset({T_0}) if state in WITH_PARTITIONS else frozenset()
    start_ms = -1 if state is S.EMPTY else 500
    stored = replace(STORED, state=state, epoch=epoch, partitions=partitions, start_ms=start_ms)
    return Transaction("a", stored, **live)


def is_busy(state: TransactionState) -> bool:
    """As the shard has it: what is prepared is pending until all markers are written."""
    return state in PREPARED


def test_the_moves_are_kafkas() -> None:
    assert {(before.name, after.name) for after, all_ in LEGAL_PREVIOUS.items() for before in all_} == {
        ("EMPTY", "EMPTY"),
        ("COMPLETE_COMMIT", "EMPTY"),
        ("COMPLETE_ABORT", "EMPTY"),
        ("EMPTY", "ONGOING"),
        ("ONGOING", "ONGOING"),
        ("COMPLETE_COMMIT", "ONGOING"),
        ("COMPLETE_ABORT", "ONGOING"),
        ("ONGOING", "PREPARE_COMMIT"),
        ("ONGOING", "PREPARE_ABORT"),
        ("PREPARE_COMMIT", "COMPLETE_COMMIT"),
        ("PREPARE_ABORT", "COMPLETE_ABORT"),
        ("EMPTY", "DEAD"),
        ("COMPLETE_COMMIT", "DEAD"),
        ("COMPLETE_ABORT", "DEAD"),
    }


# -- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------

ADD = {
    S.EMPTY: (S.ONGOING, {T_0, T_1}, NOW_MS),
    S.ONGOING: (S.ONGOING, {T_0, T_1}, 500),
    S.PREPARE_COMMIT: E.CONCURRENT_TRANSACTIONS,
    S.PREPARE_ABORT: E.CONCURRENT_TRANSACTIONS,
    S.COMPLETE_COMMIT: (S.ONGOING, {T_0, T_1}, NOW_MS),
    S.COMPLETE_ABORT: (S.ONGOING, {T_0, T_1}, NOW_MS),
    S.DEAD: E.UNKNOWN_SERVER_ERROR,
    S.PREPARE_EPOCH_FENCE: E.UNKNOWN_SERVER_ERROR,
}


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_adding_partitions(state: TransactionState) -> None:
    known = a_transaction(state)

    outcome = moves.add_partitions(known, OWNER, [T_0, T_1], NOW_MS, is_pending=is_busy(state))

    if isinstance(outcome, ErrorCode):
        assert outcome is ADD[state]
    else:
        assert (outcome.state, outcome.partitions, outcome.start_ms) == ADD[state]
        assert outcome.last_update_ms == NOW_MS


def test_partitions_that_were_added_are_not_written_again() -> None:
    known = a_transaction(S.ONGOING)

    assert moves.add_partitions(known, OWNER, [T_0], NOW_MS, is_pending=False) is E.NONE


# -- EndTxn --------------------------------------------------------------------------------------

END = {
    S.EMPTY: (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    S.ONGOING: (S.PREPARE_COMMIT, S.PREPARE_ABORT),
    S.PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    S.PREPARE_ABORT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    S.COMPLETE_COMMIT: (E.NONE, E.INVALID_TXN_STATE),
    S.COMPLETE_ABORT: (E.INVALID_TXN_STATE, E.NONE),
    S.DEAD: (E.UNKNOWN_SERVER_ERROR, E.UNKNOWN_SERVER_ERROR),
    S.PREPARE_EPOCH_FENCE: (E.UNKNOWN_SERVER_ERROR, E.UNKNOWN_SERVER_ERROR),
}


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_ending_a_transaction(state: TransactionState, is_commit: bool) -> None:
    known = a_transaction(state)

    outcome = moves.end(known, OWNER, NOW_MS, is_commit=is_commit, is_pending=is_busy(state))

    expected = END[state][0 if is_commit else 1]
    if isinstance(outcome, ErrorCode):
        assert outcome is expected
    else:
        assert outcome == replace(known.stored, state=expected, last_update_ms=NOW_MS)


@pytest.mark.parametrize("prepared", COMPLETE_OF, ids=lambda state: state.name)
def test_a_completed_transaction_has_no_partitions(prepared: TransactionState) -> None:
    stored = a_transaction(prepared).stored

    completed = moves.completed(stored, NOW_MS)

    assert completed == replace(
        stored, state=COMPLETE_OF[prepared], partitions=frozenset(), last_update_ms=NOW_MS
    )


# -- verification --------------------------------------------------------------------------------

VERIFY = {
    S.EMPTY: (E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
    S.ONGOING: (E.NONE, E.TRANSACTION_ABORTABLE),
    S.PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    S.PREPARE_ABORT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    S.COMPLETE_COMMIT: (E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
    S.COMPLETE_ABORT: (E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
}


@pytest.mark.parametrize("state", VERIFY, ids=lambda state: state.name)
def test_verifying_partitions(state: TransactionState) -> None:
    codes = moves.verify(a_transaction(state), OWNER, [T_0, T_1])

    assert (codes[T_0], codes[T_1]) == VERIFY[state]


# -- who may ask ---------------------------------------------------------------------------------

STRANGERS = {
    "other id": (Producer(8, 3), E.INVALID_PRODUCER_ID_MAPPING),
    "older epoch": (Producer(7, 2), E.PRODUCER_FENCED),
    "newer epoch": (Producer(7, 4), E.PRODUCER_FENCED),
}


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_only_the_owner_may_change_a_transaction(state: TransactionState, stranger: str) -> None:
    """Whoever is not the owner hears so even while a change is under way."""
    producer, expected = STRANGERS[stranger]
    known = a_transaction(state)

    assert moves.add_partitions(known, producer, [T_1], NOW_MS, is_pending=True) is expected
    assert moves.end(known, producer, NOW_MS, is_commit=True, is_pending=True) is expected
    assert moves.verify(known, producer, [T_0]) == {T_0: expected}


def test_nobody_owns_an_unknown_id() -> None:
    unknown = E.INVALID_PRODUCER_ID_MAPPING

    assert moves.add_partitions(None, OWNER, [T_0], NOW_MS, is_pending=False) is unknown
    assert moves.end(None, OWNER, NOW_MS, is_commit=True, is_pending=False) is unknown
    assert moves.verify(None, OWNER, [T_0]) == {T_0: unknown}


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_a_change_under_way_refuses_every_other(state: TransactionState) -> None:
    known, busy = a_transaction(state), E.CONCURRENT_TRANSACTIONS

    assert moves.add_partitions(known, OWNER, [T_1], NOW_MS, is_pending=True) is busy
    assert moves.end(known, OWNER, NOW_MS, is_commit=True, is_pending=True) is busy
    assert initialise(known, None, is_pending=True) is busy
    assert initialise(known, Producer(8, 3), is_pending=True) is busy


def test_a_change_under_way_does_not_hold_up_verification() -> None:
    """KAFKA-14904: a write to one partition need not wait until another is added."""
    assert moves.verify(a_transaction(S.ONGOING), OWNER, [T_0]) == {T_0: E.NONE}


# -- InitProducerId ------------------------------------------------------------------------------


def initialise(
    known: Transaction | None,
    owner: Producer | None,
    *,
    is_pending: bool | None = None,
    keeps: bool = False,
) -> Initialisation | ErrorCode:
    is_prepared = known is not None and is_busy(known.stored.state)
    return moves.initialise(
        known,
        owner,
        40_000,
        lambda: NEW_ID,
        NOW_MS,
        is_pending=is_prepared if is_pending is None else is_pending,
        keeps=keeps,
    )


INIT = {
    S.EMPTY: (S.EMPTY, 4),
    S.ONGOING: (S.PREPARE_ABORT, 4),
    S.PREPARE_COMMIT: E.CONCURRENT_TRANSACTIONS,
    S.PREPARE_ABORT: E.CONCURRENT_TRANSACTIONS,
    S.COMPLETE_COMMIT: (S.EMPTY, 4),
    S.COMPLETE_ABORT: (S.EMPTY, 4),
    S.DEAD: E.UNKNOWN_SERVER_ERROR,
    S.PREPARE_EPOCH_FENCE: E.UNKNOWN_SERVER_ERROR,
}


@pytest.mark.parametrize("owner", [None, OWNER], ids=["new", "owner"])
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_initialising_a_producer(state: TransactionState, owner: Producer | None) -> None:
    known = a_transaction(state)

    outcome = initialise(known, owner)

    if isinstance(outcome, ErrorCode):
        assert outcome is INIT[state]
    else:
        assert (outcome.target.state, outcome.target.epoch) == INIT[state]
        assert outcome.target.producer_id == 7
        if outcome.is_fence:
            assert outcome.target == replace(
                known.stored, state=S.PREPARE_ABORT, epoch=4, last_update_ms=NOW_MS
            )
            assert outcome.last_epoch == -1
        else:
            assert (outcome.target.timeout_ms, outcome.target.start_ms) == (40_000, -1)
            assert outcome.last_epoch == (-1 if owner is None else 3)


KEEP = {**INIT, S.ONGOING: (S.ONGOING, 3)}


@pytest.mark.parametrize("owner", [None, OWNER], ids=["new", "owner"])
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_initialising_without_an_end_to_what_is_open(state: TransactionState, owner: Producer | None) -> None:
    """KIP-939: only an open transaction makes a difference."""
    known = a_transaction(state)

    outcome = initialise(known, owner, keeps=True)

    if isinstance(outcome, ErrorCode):
        assert outcome is KEEP[state]
    else:
        assert (outcome.target.state, outcome.target.epoch) == KEEP[state]
        assert outcome.target.owner == Producer(7, 4)
        assert outcome.keeps_open is (state is S.ONGOING)
        assert outcome.last_epoch == (-1 if owner is None else 3)
        if outcome.keeps_open:
            assert outcome.target == replace(known.stored, resumed_by=Producer(7, 4), last_update_ms=NOW_MS)


KEEPERS = [
    # owner so far, last id, last epoch, claimed -> next owner, last epoch; or the refusal
    pytest.param(None, -1, -1, Producer(7, 2), E.PRODUCER_FENCED, id="older"),
    pytest.param(None, -1, -1, Producer(7, 4), E.PRODUCER_FENCED, id="newer"),
    pytest.param(None, -1, -1, Producer(8, 3), E.PRODUCER_FENCED, id="other id"),
    pytest.param(None, 7, 2, Producer(7, 2), E.PRODUCER_FENCED, id="repeated from before"),
    pytest.param(Producer(7, 4), 7, 3, Producer(7, 3), (Producer(7, 4), 3), id="repeated"),
    pytest.param(Producer(7, 4), 7, -1, Producer(7, 3), E.PRODUCER_FENCED, id="resumed by somebody else"),
    pytest.param(Producer(7, 4), 7, 3, Producer(7, 4), (Producer(7, 5), 4), id="again"),
    pytest.param(Producer(7, 4), 7, 3, None, (Producer(7, 5), -1), id="resumed again"),
    pytest.param(Producer(7, 32_766), 7, -1, None, (Producer(NEW_ID, 0), -1), id="exhausted"),
    pytest.param(
        Producer(9, 0), 7, 32_766, Producer(7, 32_766), (Producer(9, 0), 32_766), id="exhausted, repeated"
    ),
    pytest.param(Producer(9, 0), 7, -1, None, (Producer(9, 1), -1), id="exhausted, resumed again"),
]


@pytest.mark.parametrize(("resumed_by", "last_id", "last_epoch", "claimed", "expected"), KEEPERS)
def test_claims_to_an_open_transaction(
    resumed_by: Producer | None,
    last_id: int,
    last_epoch: int,
    claimed: Producer | None,
    expected: tuple[Producer, int] | ErrorCode,
) -> None:
    known = a_transaction(S.ONGOING, last_producer_id=last_id, last_epoch=last_epoch)
    known.stored = replace(known.stored, resumed_by=resumed_by)

    outcome = initialise(known, claimed, keeps=True)

    if isinstance(outcome, ErrorCode):
        assert outcome is expected
    else:
        assert (outcome.target.owner, outcome.last_epoch) == expected
        assert outcome.target.producer == Producer(7, 3)


@pytest.mark.parametrize(
    ("has_ms", "asked_ms", "then_ms"),
    [(60_000, 40_000, 60_000), (60_000, NO_TIMEOUT_MS, NO_TIMEOUT_MS), (NO_TIMEOUT_MS, 1, NO_TIMEOUT_MS)],
)
def test_the_time_out_of_an_open_transaction_may_be_lifted_and_is_never_set(
    has_ms: int, asked_ms: int, then_ms: int
) -> None:
    known = a_transaction(S.ONGOING)
    known.stored = replace(known.stored, timeout_ms=has_ms)

    outcome = moves.initialise(known, None, asked_ms, lambda: NEW_ID, NOW_MS, is_pending=False, keeps=True)

    assert isinstance(outcome, Initialisation)
    assert outcome.target.timeout_ms == then_ms
    assert outcome.target.is_prepared is (then_ms == NO_TIMEOUT_MS)


OWNERS = [
    # resumed by -> commit: id and epoch of markers, then of the owner; abort by a fence: the same
    pytest.param(None, ((7, 3), (7, 3)), ((7, 4), (7, 4)), id="not resumed"),
    pytest.param(Producer(7, 5), ((7, 5), (7, 5)), ((7, 6), (7, 6)), id="resumed"),
    pytest.param(
        Producer(7, 32_766), ((7, 32_766), (7, 32_766)), ((7, 32_767), (7, 32_767)), id="last epoch"
    ),
    pytest.param(Producer(9, 1), ((7, 4), (9, 1)), ((7, 4), (9, 2)), id="another id"),
]


@pytest.mark.parametrize(("resumed_by", "committed", "aborted"), OWNERS)
def test_markers_fence_whoever_wrote_and_the_last_owner_stays(
    resumed_by: Producer | None,
    committed: tuple[tuple[int, int], tuple[int, int]],
    aborted: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    known = a_transaction(S.ONGOING)
    known.stored = replace(known.stored, resumed_by=resumed_by)

    commit = moves.end(known, known.stored.owner, NOW_MS, is_commit=True, is_pending=False)
    fence = moves.fenced(known.stored, NOW_MS)

    assert not isinstance(commit, ErrorCode)
    for prepared, expected in ((commit, committed), (fence, aborted)):
        assert (prepared.producer, moves.completed(prepared, NOW_MS).producer) == expected
        assert moves.completed(prepared, NOW_MS).resumed_by is None


@pytest.mark.parametrize("resumed_by", [Producer(7, 5), Producer(9, 0)], ids=["same id", "another id"])
def test_a_resumed_transaction_can_only_be_ended_and_only_by_its_owner(resumed_by: Producer) -> None:
    known = a_transaction(S.ONGOING)
    known.stored = replace(known.stored, resumed_by=resumed_by)

    assert moves.add_partitions(known, resumed_by, [T_0], NOW_MS, is_pending=False) is E.INVALID_TXN_STATE
    assert moves.verify(known, resumed_by, [T_0]) == {T_0: E.TRANSACTION_ABORTABLE}
    for stale in (OWNER, Producer(resumed_by.producer_id, resumed_by.epoch + 1)):
        assert moves.end(known, stale, NOW_MS, is_commit=True, is_pending=False) is E.PRODUCER_FENCED
        assert moves.add_partitions(known, stale, [T_1], NOW_MS, is_pending=False) is E.PRODUCER_FENCED
        assert moves.verify(known, stale, [T_0]) == {T_0: E.PRODUCER_FENCED}
        assert initialise(known, stale) is E.PRODUCER_FENCED


@pytest.mark.parametrize("claimed", [Producer(7, 2), Producer(7, 4), Producer(7, 0)])
def test_only_its_owner_may_abort_an_open_transaction_by_asking_for_an_epoch(claimed: Producer) -> None:
    """Kafka 3.9 looks at the producer id alone: a stale holder aborts the transaction of the live owner."""
    assert initialise(a_transaction(S.ONGOING), claimed) is E.PRODUCER_FENCED


CLAIMS = [
    # epoch, last id, last epoch, owner -> id, epoch, last epoch; or the refusal
    pytest.param(3, -1, -1, Producer(7, 3), (7, 4, 3), id="own epoch"),
    pytest.param(3, 7, 2, Producer(7, 2), (7, 3, 2), id="repeated"),
    pytest.param(3, 7, -1, Producer(7, 2), E.PRODUCER_FENCED, id="older"),
    pytest.param(3, 7, 2, Producer(7, 4), E.PRODUCER_FENCED, id="newer"),
    pytest.param(3, 7, 2, Producer(8, 3), E.PRODUCER_FENCED, id="other id"),
    pytest.param(-1, -1, -1, Producer(8, 9), (7, 0, -1), id="never given out"),
    pytest.param(-1, -1, -1, None, (7, 0, -1), id="never given out, new"),
    pytest.param(32_765, -1, -1, None, (7, 32_766, -1), id="last epoch"),
    pytest.param(32_766, -1, -1, None, (NEW_ID, 0, -1), id="exhausted, new"),
    pytest.param(32_766, -1, -1, Producer(7, 32_766), (NEW_ID, 0, 32_766), id="exhausted, owner"),
    pytest.param(32_766, -1, -1, Producer(7, 32_765), E.UNKNOWN_SERVER_ERROR, id="exhausted, older"),
    pytest.param(32_767, -1, -1, None, (NEW_ID, 0, -1), id="fenced at the last epoch"),
    pytest.param(0, 6, 32_766, Producer(6, 32_766), (7, 0, 32_766), id="exhausted, repeated"),
    pytest.param(0, 6, -1, Producer(6, 32_766), E.PRODUCER_FENCED, id="exhausted, not claimed"),
    pytest.param(0, 6, 32_766, Producer(6, 32_765), E.PRODUCER_FENCED, id="exhausted, older repeated"),
]


@pytest.mark.parametrize(("epoch", "last_id", "last_epoch", "owner", "expected"), CLAIMS)
@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT], ids=lambda s: s.name)
def test_claims_of_epochs(
    state: TransactionState,
    epoch: int,
    last_id: int,
    last_epoch: int,
    owner: Producer | None,
    expected: tuple[int, int, int] | ErrorCode,
) -> None:
    known = a_transaction(state, epoch=epoch, last_producer_id=last_id, last_epoch=last_epoch)

    outcome = initialise(known, owner)

    if isinstance(outcome, ErrorCode):
        assert outcome is expected
    else:
        assert (outcome.target.producer_id, outcome.target.epoch, outcome.last_epoch) == expected


def test_a_repeated_claim_can_be_repeated_again() -> None:
    known = a_transaction(S.EMPTY, epoch=0, last_producer_id=6, last_epoch=32_766)

    outcome = initialise(known, Producer(6, 32_766))

    assert isinstance(outcome, Initialisation)
    assert (outcome.last_producer_id, outcome.last_epoch) == (6, 32_766)


@pytest.mark.parametrize("owner", [None, Producer(123, 5)], ids=["new", "claims another id"])
def test_an_unknown_id_gets_a_new_producer_id(owner: Producer | None) -> None:
    outcome = initialise(None, owner)

    assert isinstance(outcome, Initialisation)
    assert outcome.target == StoredTransaction(NEW_ID, 0, 40_000, S.EMPTY, NOW_MS)


@pytest.mark.parametrize("known", [None, a_transaction(S.EMPTY, epoch=32_766)], ids=["unknown", "exhausted"])
def test_while_there_are_no_producer_ids_the_client_waits(known: Transaction | None) -> None:
    outcome = moves.initialise(known, None, 40_000, lambda: None, NOW_MS, is_pending=False)

    assert outcome is E.COORDINATOR_LOAD_IN_PROGRESS


def test_a_fence_never_passes_the_highest_epoch() -> None:
    assert moves.fenced(a_transaction(S.ONGOING, epoch=32_766).stored, NOW_MS).epoch == 32_767
    assert moves.fenced(a_transaction(S.ONGOING, epoch=32_767).stored, NOW_MS).epoch == 32_767
