"""Records found by their time, whatever their producers claim, and without keeping others waiting."""

from __future__ import annotations

import pytest

from ottla.model.errors import LogDirectoryFailed
from ottla.records.batch import read_header, seal
from ottla.records.builder import assemble, build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record, write_record
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.log import time_search
from ottla.storage.log.log import Log
from ottla.storage.log.time_search import TimeSearch
from support.logs.builders import (
    a_batch,
    a_log,
    appended,
    found_by_time,
    small_segments,
)

LATEST = None
FAR_MS = 4_000_000_000_000


def timed() -> Log:
    log = a_log(small_segments())
    for times in ((100, 300), (200, 250), (400, 350), (500, 500), (450, 600)):
        appended(log, of_times(*times), epoch=1)
    return log


def of_times(*times: int, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([Record(b"key", bytes(60), timestamp=time) for time in times], codec=codec)


def claiming(batch: bytearray, max_timestamp: int) -> bytearray:
    """The same records under a header that says something else of them."""
    header = read_header(batch)._replace(max_timestamp=max_timestamp)
    return assemble(header, batch[61:], Codec.NONE)


def unsound() -> bytearray:
    """Eight records; the inside of the third makes no sense, its length does."""
    batch = of_times(*range(100, 108))
    at = -1
    for _ in range(3):
        at = batch.index(b"key", at + 1)
    batch[at - 1] = 0x7E
    seal(batch, 0, len(batch))
    return batch


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (100, 0)),
        (100, (100, 0)),
        (101, (300, 1)),
        (300, (300, 1)),
        (301, (400, 4)),
        (500, (500, 6)),
        (501, (600, 9)),
        (601, None),
    ],
)
def test_first_record_at_or_behind_a_time(timestamp: int, found: tuple[int, int] | None) -> None:
    outcome = found_by_time(timed(), timestamp)

    assert (None if outcome is None else (outcome.timestamp, outcome.offset)) == found


def test_record_below_the_log_start_is_not_found() -> None:
    log = timed()
    log.set_high_watermark(log.end_offset)
    log.raise_log_start_offset(2)

    assert found_by_time(log, 0) == (200, 2, 1)


def test_largest_timestamp_is_found_with_its_first_record_and_epoch() -> None:
    assert found_by_time(timed(), LATEST) == (600, 9, 1)


def test_log_of_records_without_time_answers_its_first_record() -> None:
    log = a_log()
    appended(log, a_batch(b"a", timestamp=-1))
    appended(log, a_batch(b"b", timestamp=-1))

    assert found_by_time(log, LATEST) == (-1, 0, 0)


def test_empty_log_has_no_largest_timestamp() -> None:
    assert found_by_time(a_log(), LATEST) is None


def test_largest_timestamp_before_the_log_start_is_told_as_kafka_tells_it() -> None:
    log = a_log()
    for time in (900, 100, 200):
        appended(log, of_times(time))
    log.set_high_watermark(3)
    log.raise_log_start_offset(1)

    assert found_by_time(log, LATEST) == (900, 0, 0)
    assert found_by_time(log, 150) == (200, 2, 0)


# -- what producers claim ------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_header_key_that_is_no_text_hides_no_record(codec: Codec) -> None:
    batch = build_batch([Record(b"k", b"v", (("name", b"x"),), 1_000)])
    batch[batch.index(b"name")] = 0xFF
    log = a_log()
    appended(log, assemble(read_header(batch), batch[61:], codec))

    assert found_by_time(log, 5) == found_by_time(log, LATEST) == (1_000, 0, 0)
    assert log.home.directory.failure is None


def test_record_that_makes_no_sense_inside_hides_none_behind_it() -> None:
    log = a_log()
    appended(log, unsound())

    assert found_by_time(log, 105) == (105, 5, 0)
    assert found_by_time(log, LATEST) == (107, 7, 0)


@pytest.mark.parametrize("area", [b"\x80" * 12, b"\x0c\x00" + b"\x80" * 5, b"\x7e\x00\x00\x00\x01\x01\x00"])
def test_batch_whose_records_cannot_be_told_apart_is_taken_at_its_word(area: bytes) -> None:
    log = a_log()
    appended(log, of_times(10))
    batch = assemble(read_header(of_times(1_000))._replace(base_offset=1), area, Codec.NONE)
    log.append_as_follower(batch, now_ms=0)

    assert found_by_time(log, 500) == found_by_time(log, LATEST) == (1_000, 1, -1)
    assert log.home.directory.failure is None


def test_record_that_claims_a_place_outside_of_its_batch_is_found_at_the_batch() -> None:
    log = a_log()
    appended(log, of_times(10))
    area = bytearray()
    write_record(area, 0, 70_000, b"k", b"v")
    appended(log, assemble(read_header(of_times(1_000)), area, Codec.NONE))

    assert found_by_time(log, 500) == (1_000, 1, 0)


def test_batch_that_is_not_as_it_was_written_is_the_failure_of_its_disk() -> None:
    log = a_log()
    appended(log, of_times(1_000))
    path = log.active_segment.path(".log")
    content = bytearray(log.home.directory.disk.read_file(path))
    content[-1] ^= 0xFF
    log.home.directory.disk.write_file(path, content)

    with pytest.raises(LogDirectoryFailed):
        found_by_time(log, 5)


def test_batches_that_claim_a_time_they_have_not_are_passed_over() -> None:
    log = a_log()
    for _ in range(5):
        appended(log, claiming(of_times(*range(100, 110)), FAR_MS))
    appended(log, of_times(5_000))

    assert found_by_time(log, 4_000) == (5_000, 50, 0)


def test_few_batches_are_opened_for_false_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log(small_segments())
    for _ in range(200):
        appended(log, claiming(of_times(*range(100, 106)), FAR_MS))
    opened = []
    read = time_search.times_and_offsets
    monkeypatch.setattr(
        time_search, "times_and_offsets", lambda *asked: opened.append(asked[1]) or read(*asked)
    )

    found = found_by_time(log, FAR_MS - 1)

    assert len(opened) == time_search.FALSE_CLAIMS_MAX
    assert found == (FAR_MS, 6 * (time_search.FALSE_CLAIMS_MAX - 1), 0)
    assert found_by_time(log, LATEST) == (FAR_MS, 0, 0)


def test_few_records_are_looked_at_for_false_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_search, "RECORDS_PER_PORTION", 10)
    monkeypatch.setattr(time_search, "RECORDS_MAX", 50)
    log = a_log()
    for _ in range(4):
        appended(log, claiming(of_times(*[100] * 21), FAR_MS))

    assert found_by_time(log, FAR_MS - 1) == (FAR_MS, 42, 0)


# -- portions ------------------------------------------------------------------------------------------


def portions(search: TimeSearch) -> int:
    count = 1
    while not search.go_on():
        count += 1
    return count


def test_long_search_comes_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_search, "BATCHES_PER_PORTION", 5)
    monkeypatch.setattr(time_search, "RECORDS_PER_PORTION", 10)
    log = a_log()
    appended(log, of_times(900))
    for _ in range(20):
        appended(log, of_times(100))
    appended(log, of_times(*[100] * 50, 800))
    log.set_high_watermark(log.end_offset)
    log.raise_log_start_offset(1)

    search = TimeSearch(log, 700)

    assert portions(search) >= 1 + 20 // 5 + 50 // 10
    assert search.found == (800, 71, 0)


@pytest.mark.parametrize("before", range(1, 7))
def test_search_begins_anew_when_the_log_is_cut(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_search, "BATCHES_PER_PORTION", 1)
    log = a_log()
    for time in (100, 200, 300, 400, 500):
        appended(log, of_times(time))
    search = TimeSearch(log, 450)
    for _ in range(before):
        assert not search.go_on()
    log.truncate_to(1)
    for time in (700, 600):
        appended(log, of_times(time, time, time), epoch=2)

    portions(search)

    assert search.found == (700, 1, 2)
    assert log.home.directory.failure is None


@pytest.mark.parametrize("before", range(1, 10))
@pytest.mark.parametrize("timestamp", [150, LATEST])
def test_search_begins_anew_when_the_segment_it_looks_at_is_deleted(
    before: int, timestamp: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_search, "RECORDS_PER_PORTION", 1)
    log = a_log(small_segments())
    for times in ((100, 120, 200), (100, 100, 100), (110, 110, 110), (111, 111, 190), (111, 111, 180)):
        appended(log, of_times(*times))
    log.set_high_watermark(log.end_offset)
    search = TimeSearch(log, timestamp)
    for _ in range(before):
        if search.go_on():
            return  # it was done before
    log.raise_log_start_offset(6)
    assert apply_retention(log, 905)

    portions(search)

    assert search.found == (190, 11, 0)
    assert log.home.directory.failure is None
