"""Batches that are sent again when newer ones have pushed them out of memory: the log knows them."""

from __future__ import annotations

import errno

import pytest

from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.records.batch import SEQUENCE_MAX
from ottla.records.validate import Refused
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended, Duplicate
from ottla.storage.producers import repeated_batches
from ottla.storage.producers.state import is_before
from support.logs.builders import a_batch, a_disk, a_log, append, reopened, small_segments

PID = 7


def send(
    log: Log, sequence: int, count: int = 1, *, term: int = 1, producer_epoch: int = 0, pid: int = PID
) -> object:
    """A batch in the term of a leader."""
    batch = a_batch(*[b"v"] * count, producer_id=pid, producer_epoch=producer_epoch, sequence=sequence)
    return append(log, batch, epoch=term)


def assert_out_of_order(outcome: object) -> None:
    assert isinstance(outcome, Refused), outcome
    assert ErrorCode(outcome.error) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_whatever_was_written_before_the_leaders_term_is_a_duplicate() -> None:
    """Java's producer: five under way to a leader that froze, hundreds since to the next one."""
    log = a_log(small_segments())
    for at in range(200):
        send(log, 2 * at, 2)
        send(log, 3 * at, 3, pid=PID + 1)
    for at in range(400, 450):
        send(log, at, term=2)

    outcomes = [send(log, 2 * at, 2, term=2) for at in range(200)]

    assert {type(each) for each in outcomes} == {Duplicate}
    assert [each.base_offset for each in outcomes] == [5 * at for at in range(200)]  # type: ignore[attr-defined]
    assert log.end_offset == 1050
    assert isinstance(send(log, 450, term=2), Appended)


def test_the_sixth_last_batch_of_the_same_term_is_out_of_order_as_in_kafka() -> None:
    log = a_log()
    for at in range(6):
        send(log, at)

    assert_out_of_order(send(log, 0))
    assert isinstance(send(log, 1), Duplicate)


def test_only_the_same_batch_of_the_same_epoch_is_a_duplicate() -> None:
    log = a_log()
    send(log, 0, 3)
    send(log, 0, 2, producer_epoch=1)
    for at in range(2, 12):
        send(log, at, producer_epoch=1)

    assert_out_of_order(send(log, 0, 3, producer_epoch=1, term=2))
    assert_out_of_order(send(log, 1, 1, producer_epoch=1, term=2))
    assert isinstance(send(log, 0, 2, producer_epoch=1, term=2), Duplicate)


def test_a_batch_that_was_never_written_is_none_though_later_ones_were() -> None:
    log = a_log()
    for at in range(40, 60):
        send(log, at)

    assert_out_of_order(send(log, 39, term=2))
    assert_out_of_order(send(log, 0, term=2))


def test_what_was_cut_off_is_no_duplicate() -> None:
    log = a_log(small_segments())
    for at in range(20):
        send(log, at)
    log.truncate_to(3)
    for at in range(3, 20, 2):
        send(log, at, 2, term=2)

    assert_out_of_order(send(log, 3, term=3))
    assert isinstance(send(log, 3, 2, term=3), Duplicate)
    assert isinstance(send(log, 2, term=3), Duplicate)


def test_sequences_behind_the_greatest_come_after_it() -> None:
    log = a_log()
    send(log, SEQUENCE_MAX - 1, 2)
    for at in range(10):
        send(log, at)

    assert isinstance(send(log, SEQUENCE_MAX - 1, 2, term=2), Duplicate)
    assert is_before(SEQUENCE_MAX, 0)
    assert not is_before(0, SEQUENCE_MAX)
    assert not is_before(5, 5)


def test_the_search_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_batches, "LOOKED_AT_MAX", 50)
    log = a_log(small_segments())
    for at in range(100):
        send(log, at)

    assert isinstance(send(log, 80, term=2), Duplicate)
    assert_out_of_order(send(log, 10, term=2))


def test_what_was_looked_for_in_vain_is_not_looked_for_again() -> None:
    """A producer that knows no better sends it many times a second, until it expires."""
    disk = a_disk()
    log = a_log(small_segments(), disk)
    for at in range(100):
        send(log, at, pid=PID + 1)
    for at in range(40, 60):
        send(log, at)
    assert_out_of_order(send(log, 10, term=2))
    disk.fail = lambda operation: errno.EIO if operation == "read" else 0

    for at in (10, 11, 39):
        assert_out_of_order(send(log, at, term=2))


def test_what_lies_nearer_than_a_search_came_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_batches, "LOOKED_AT_MAX", 50)
    log = a_log(small_segments())
    for at in range(100):
        send(log, at)
    assert_out_of_order(send(log, 10, term=2))

    assert isinstance(send(log, 80, term=2), Duplicate)
    send(log, 0, producer_epoch=1, term=2)
    for at in range(1, 9):
        send(log, at, producer_epoch=1, term=2)
    assert isinstance(send(log, 1, producer_epoch=1, term=3), Duplicate)


def test_what_the_leader_wrote_since_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longer the last leader stood still, the more its successor has written."""
    monkeypatch.setattr(repeated_batches, "LOOKED_AT_MAX", 50)
    monkeypatch.setattr(repeated_batches, "STEP_BYTES", 1_000)
    log = a_log(small_segments(segment_bytes=1_000_000))
    for at in range(200):
        send(log, at, term=1 if at < 100 else 2)

    assert isinstance(send(log, 99, term=2), Duplicate)
    assert isinstance(send(log, 80, term=2), Duplicate)


@pytest.mark.parametrize("was_clean", [True, False])
def test_batches_written_before_the_snapshot_are_still_duplicates_after_a_restart(was_clean: bool) -> None:
    """Seed 4: four batches under way, a roll, a kill: their repetitions passed for out of order."""
    log = a_log(small_segments())
    for at in range(8):
        send(log, at)
    log.roll(0)
    if was_clean:
        log.close()

    log = reopened(log, was_clean=was_clean)

    assert [type(send(log, at)) for at in range(8)] == [Duplicate] * 8
    assert isinstance(send(log, 8), Appended)
    outcome = send(log, 4)
    assert isinstance(outcome, Duplicate)
    assert outcome.base_offset == 4


def test_a_disk_that_cannot_be_read_for_a_repetition_takes_its_directory_offline() -> None:
    """Seed 500820328: the bare error came out of the broker, and nobody took the directory offline."""
    disk = a_disk()
    log = a_log(small_segments(), disk)
    for at in range(8):
        send(log, at)
    log.roll(0)
    log.close()
    log = reopened(log, was_clean=True)
    assert isinstance(send(log, 7), Duplicate)
    disk.fail = lambda operation: errno.EIO if operation == "read" else 0

    with pytest.raises(LogDirectoryFailed):
        send(log, 4)

    assert log.home.directory.failure is not None
