"""Idempotent producers and transactions on one partition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import ErrorCode
from ottla.records.batch import SEQUENCE_MAX, read_header
from ottla.records.validate import Refused
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended, Duplicate
from support.logs.builders import (
    a_batch,
    a_log,
    append,
    appended,
    end_transaction,
    reopened,
    small_segments,
)
from support.logs.truth import check_log, facts_of

PID = 7


def send(
    log: Log, sequence: int, count: int = 1, *, epoch: int = 0, pid: int = PID, in_txn: bool = False
) -> Appended | Duplicate | Refused:
    batch = a_batch(
        *[b"v"] * count, producer_id=pid, producer_epoch=epoch, sequence=sequence, is_transactional=in_txn
    )
    return append(log, batch)


def code_of(outcome: object) -> ErrorCode:
    assert isinstance(outcome, Refused), outcome
    assert outcome.while_appending
    assert outcome.message is None
    return ErrorCode(outcome.error)


# -- sequences -----------------------------------------------------------------------------------------


def test_unknown_producer_may_begin_anywhere() -> None:
    assert isinstance(send(a_log(), 41), Appended)


def test_any_of_the_last_five_batches_is_a_duplicate_with_its_first_offsets() -> None:
    """KAFKA-5494: not only the last one is remembered."""
    log = a_log()
    for at in range(6):
        send(log, 2 * at, 2)

    outcomes = [send(log, 2 * at, 2) for at in range(1, 6)]

    assert [(each.base_offset, each.last_offset) for each in outcomes] == [  # type: ignore[union-attr]
        (2 * at, 2 * at + 1) for at in range(1, 6)
    ]
    assert all(isinstance(each, Duplicate) for each in outcomes)
    assert log.end_offset == 12


def test_duplicate_answers_with_the_batchs_own_time() -> None:
    log = a_log()
    batch = a_batch(b"v", producer_id=PID, producer_epoch=0, sequence=0, timestamp=777)
    append(log, bytearray(batch))

    outcome = append(log, batch)

    assert isinstance(outcome, Duplicate)
    assert outcome.log_append_time_ms == 777


def test_part_of_a_remembered_batch_is_no_duplicate() -> None:
    log = a_log()
    send(log, 0, 3)

    assert code_of(send(log, 0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("sequence", [1, 3, 50])
def test_gap_in_the_sequence_is_out_of_order(sequence: int) -> None:
    log = a_log()
    send(log, 0, 2)

    assert code_of(send(log, sequence)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 2), Appended)


def test_sequence_goes_on_at_zero_behind_its_maximum() -> None:
    log = a_log()
    send(log, SEQUENCE_MAX)

    assert isinstance(send(log, 0), Appended)


def test_batch_may_lie_across_the_wrap() -> None:
    log = a_log()
    send(log, SEQUENCE_MAX - 1, 4)

    assert isinstance(send(log, 2), Appended)
    assert isinstance(send(log, SEQUENCE_MAX - 1, 4), Duplicate)


def test_older_epoch_is_fenced() -> None:
    log = a_log()
    send(log, 0, epoch=3)

    assert code_of(send(log, 1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_newer_epoch_begins_at_zero() -> None:
    log = a_log()
    send(log, 0, epoch=3)

    assert code_of(send(log, 1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 0, epoch=4), Appended)


def test_new_epoch_forgets_the_old_batches() -> None:
    log = a_log()
    send(log, 0, epoch=0)
    send(log, 0, epoch=1)

    assert log.producers.state.producers[PID].last_offset == 1
    assert len(log.producers.state.producers[PID].batches) == 1


def test_producer_known_by_a_marker_alone_begins_at_zero() -> None:
    log = a_log()
    end_transaction(log, PID, is_commit=False, producer_epoch=2)

    assert code_of(send(log, 1, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 0, epoch=2), Appended)


def test_refused_batch_leaves_no_trace() -> None:
    log = a_log()
    send(log, 0)
    before = facts_of(log.producers.state)

    send(log, 9)

    assert facts_of(log.producers.state) == before
    assert log.end_offset == 1


def test_silent_producer_is_forgotten_but_not_inside_a_transaction() -> None:
    log = a_log()
    send(log, 0, pid=1)
    send(log, 0, pid=2, in_txn=True)

    log.expire_producers(now_ms=1_000 + 86_400_000, expiration_ms=86_400_000)

    assert list(log.producers.state.producers) == [2]


# -- transactions --------------------------------------------------------------------------------------


def test_last_stable_offset_stops_at_the_oldest_open_transaction() -> None:
    log = a_log()
    send(log, 0, pid=1)
    send(log, 0, pid=2, in_txn=True)
    send(log, 0, pid=3, in_txn=True)
    log.set_high_watermark(3)
    assert log.last_stable_offset == 1

    end_transaction(log, 2, is_commit=True)
    log.set_high_watermark(4)

    assert log.last_stable_offset == 2


def test_last_stable_offset_waits_until_the_marker_is_replicated() -> None:
    log = a_log()
    send(log, 0, in_txn=True)
    end_transaction(log, PID, is_commit=True)

    log.set_high_watermark(1)
    assert log.last_stable_offset == 0

    log.set_high_watermark(2)
    assert log.last_stable_offset == 2


def test_producer_whose_records_are_deleted_but_still_in_the_file_is_known_after_a_crash() -> None:
    log = a_log()
    send(log, 0)
    appended(log, a_batch(b"other"))
    log.set_high_watermark(1)
    log.raise_log_start_offset(1)

    again = reopened(log, was_clean=False, log_start_offset=1)

    assert isinstance(send(again, 0), Duplicate)


def test_last_stable_offset_is_never_below_the_start_of_the_log() -> None:
    log = a_log()
    send(log, 0, in_txn=True)
    log.set_high_watermark(1)

    log.raise_log_start_offset(1)

    assert log.last_stable_offset == 1


def test_aborted_transaction_is_told_to_readers_of_its_records() -> None:
    log = a_log()
    send(log, 0, in_txn=True)
    end_transaction(log, PID, is_commit=False)
    send(log, 1, in_txn=True)
    end_transaction(log, PID, is_commit=True)
    log.set_high_watermark(4)

    found = log.read(0, 10_000, 4)
    assert found is not None
    aborted = log.aborted_transactions(0, found, 4)

    assert [(each.producer_id, each.first_offset, each.last_offset) for each in aborted] == [(PID, 0, 1)]
    assert aborted[0].last_stable_offset == 2
    assert log.aborted_transactions(2, found, 4) == []


def test_empty_transaction_leaves_no_entry() -> None:
    log = a_log()

    end_transaction(log, PID, is_commit=False)

    assert log.active_segment.aborted == []


def test_plain_data_inside_a_transaction_is_refused() -> None:
    log = a_log()
    send(log, 0, in_txn=True)

    assert code_of(send(log, 1)) == ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_older_producer_epoch_is_fenced() -> None:
    log = a_log()
    send(log, 0, epoch=5, in_txn=True)

    assert (
        code_of(end_transaction(log, PID, is_commit=True, producer_epoch=4))
        == ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_marker_of_an_older_coordinator_is_fenced() -> None:
    log = a_log()
    end_transaction(log, PID, is_commit=True, coordinator_epoch=5)

    outcome = end_transaction(log, PID, is_commit=True, coordinator_epoch=4)

    assert code_of(outcome) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


# -- verification (KIP-890) ----------------------------------------------------------------------------


def test_transactional_batch_must_show_the_token_of_its_verification() -> None:
    log = a_log()
    token = log.producers.start_verification(PID, 0, 0)
    batch = a_batch(b"v", producer_id=PID, producer_epoch=0, sequence=0, is_transactional=True)

    def try_with(verification: int | None) -> object:
        return log.append_as_leader(
            bytearray(batch),
            read_header(batch),
            leader_epoch=0,
            now_ms=0,
            verification=verification,
            must_be_verified=True,
        )

    assert code_of(try_with(None)) == ErrorCode.INVALID_TXN_STATE
    assert code_of(try_with((token or 0) + 1)) == ErrorCode.INVALID_TXN_STATE
    assert isinstance(try_with(token), Appended)
    assert log.producers.start_verification(PID, 0, 1) is None, "the transaction is open now"


def test_sequence_above_the_lowest_seen_while_verifying_is_out_of_order() -> None:
    log = a_log()
    log.producers.start_verification(PID, 0, 5)
    log.producers.start_verification(PID, 0, 3)

    assert code_of(send(log, 5)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 3, in_txn=True), Appended)


def test_a_verification_that_nobody_completes_is_forgotten_with_the_silent_producers() -> None:
    """Or every attempt of a producer that is never verified would be remembered for ever."""
    log = a_log()
    first = log.producers.start_verification(PID, 0, 0, now_ms=1_000)

    log.expire_producers(1_999, 1_000)
    assert log.producers.state.is_verified(PID, first)
    log.expire_producers(2_000, 1_000)

    assert not log.producers.state.is_verified(PID, first)
    assert isinstance(send(log, 7), Appended)


def test_a_token_from_before_the_state_was_rebuilt_is_worth_nothing() -> None:
    log = a_log()
    before = log.producers.start_verification(PID, 0, 0)
    log.truncate_fully_and_start_at(0)

    after = log.producers.start_verification(PID, 0, 0)

    assert log.producers.state.is_verified(PID, after)
    assert not log.producers.state.is_verified(PID, before)


# -- on every replica ---------------------------------------------------------------------------------


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 3), st.integers(1, 3)),
        st.tuples(st.just("txn"), st.integers(4, 6), st.integers(1, 2)),
        st.tuples(st.sampled_from(["commit", "abort"]), st.integers(4, 6), st.just(0)),
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(1, 6), st.just(0)),
        st.tuples(st.just("clean restart"), st.just(0), st.just(0)),
        st.tuples(st.just("crash"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(MOVES)
def test_state_kept_while_appending_equals_state_read_from_the_log(moves: list[tuple[str, int, int]]) -> None:
    """P2: on every replica, after recovery, truncation, snapshot load and roll."""
    log = a_log(small_segments())
    for move, number, count in moves:
        log = one_move(log, move, number, count)
        check_log(log, is_dense=False)


def one_move(log: Log, move: str, number: int, count: int) -> Log:
    producers = log.producers.state.producers
    if move in ("data", "txn"):
        producer = producers.get(number)
        sequence = producer.last_sequence + 1 if producer is not None else 0
        assert isinstance(send(log, sequence, count, pid=number, in_txn=move == "txn"), Appended)
    elif move in ("commit", "abort"):
        end_transaction(log, number, is_commit=move == "commit")
    elif move == "roll":
        log.roll(0)
    elif move == "truncate":
        log.truncate_to(max(0, log.end_offset - number))
    elif move == "clean restart":
        log.close()
        return reopened(log, was_clean=True)
    else:
        return reopened(log, was_clean=False)
    return log


def test_sequence_survives_a_clean_restart() -> None:
    log = a_log()
    for at in range(8):
        send(log, at)
    log.close()

    log = reopened(log, was_clean=True)

    assert isinstance(send(log, 7), Duplicate)
    assert isinstance(send(log, 8), Appended)


def test_corrupt_snapshot_is_dropped_and_the_log_replayed() -> None:
    log = a_log()
    for at in range(4):
        send(log, at)
    log.close()
    disk = log.home.directory.disk
    path = log.home.file(4, ".snapshot")
    disk.write_file(path, b"not a snapshot")

    log = reopened(log, was_clean=True)

    assert isinstance(send(log, 4), Appended)
    assert isinstance(send(log, 2), Duplicate)


def test_follower_learns_producers_from_the_batches() -> None:
    leader, follower = a_log(), a_log()
    send(leader, 0, in_txn=True)
    end_transaction(leader, PID, is_commit=False)
    send(leader, 1, in_txn=True)
    found = leader.read(0, 10_000, 3)
    assert found is not None

    follower.append_as_follower(found.read(), now_ms=0)

    assert facts_of(follower.producers.state) == facts_of(leader.producers.state)
    assert follower.active_segment.aborted == leader.active_segment.aborted


def test_appended_twice_as_plain_data_is_no_duplicate() -> None:
    log = a_log()

    appended(log, a_batch(b"v"))
    appended(log, a_batch(b"v"))

    assert log.end_offset == 2
