"""Appending, reading, rolling and truncating one log."""

from __future__ import annotations

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode
from ottla.records.batch import batches, read_header
from ottla.records.validate import Refused
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.logs.builders import (
    a_batch,
    a_log,
    all_bytes,
    append,
    appended,
    files_of,
    headers_of,
    reopened,
    small_segments,
)
from support.logs.truth import check_log


def filled(log: Log, count: int, *, size: int = 50, epoch: int = 0) -> Log:
    for _ in range(count):
        appended(log, a_batch(bytes(size)), epoch=epoch)
    return log


# -- append --------------------------------------------------------------------------------------------


def test_leader_stamps_offset_and_epoch_and_tells_them() -> None:
    log = a_log()
    appended(log, a_batch(b"a", b"b"), epoch=3)

    outcome = appended(log, a_batch(b"c"), epoch=4)

    assert (outcome.base_offset, outcome.last_offset, outcome.log_append_time_ms) == (2, 2, -1)
    headers = headers_of(all_bytes(log))
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 3), (2, 4)]
    assert log.epochs.entries() == [(3, 0), (4, 2)]


def test_what_is_warmed_ahead_ends_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(a_log(), 3)
    found = log.read(0, 10, 3)
    assert found is not None
    asked = []
    file = log.active_segment.file()
    pread = type(file).pread
    monkeypatch.setattr(
        type(file), "pread", lambda f, size, at: asked.append((size, at)) or pread(f, size, at)
    )

    found.warm(1_000_000)

    assert asked == [(log.size_bytes, 0)], "a read beyond the end leaves a hole in the heap of its thread"


def test_refused_batch_is_not_written() -> None:
    log = a_log()
    batch = a_batch(b"a")
    batch[-1] ^= 1

    outcome = append(log, batch)

    assert isinstance(outcome, Refused)
    assert outcome.error == ErrorCode.CORRUPT_MESSAGE
    assert (log.end_offset, log.size_bytes) == (0, 0)


def test_batch_in_the_midst_of_a_larger_buffer_is_written_alone() -> None:
    log = a_log()
    frame = bytearray(b"request") + a_batch(b"a") + b"rest"

    log.append_as_leader(
        memoryview(frame)[7:], read_header(frame, 7)._replace(position=0), leader_epoch=0, now_ms=0
    )

    assert len(all_bytes(log)) == len(a_batch(b"a"))


def test_follower_writes_the_leaders_bytes() -> None:
    leader, follower = filled(a_log(), 10, epoch=2), a_log()
    content = all_bytes(leader)

    outcome = follower.append_as_follower(content + content[:30], now_ms=0)

    assert isinstance(outcome, Appended)
    assert (outcome.base_offset, outcome.last_offset) == (0, 9)
    assert all_bytes(follower) == content
    assert follower.epochs.entries() == leader.epochs.entries()


def test_follower_leaves_out_batches_of_an_epoch_it_does_not_know_yet() -> None:
    leader, follower = a_log(), a_log()
    for epoch in (1, 1, 2, 1):
        appended(leader, a_batch(b"x"), epoch=epoch)

    follower.append_as_follower(all_bytes(leader), now_ms=0, leader_epoch=1)

    assert follower.end_offset == 2


def test_follower_accepts_a_gap_upwards() -> None:
    follower = a_log()

    follower.append_as_follower(a_batch(b"a") + a_batch(b"b", base_offset=10), now_ms=0)

    assert follower.end_offset == 11
    check_log(follower, is_dense=False)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (a_batch(b"a", base_offset=3) + a_batch(b"b", base_offset=3), ErrorCode.CORRUPT_MESSAGE),
        (a_batch(b"a", base_offset=3)[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (a_batch(b"a", base_offset=0), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=["offsets fall", "checksum", "below the end"],
)
def test_follower_refuses_what_no_leader_would_send(content: bytearray, code: ErrorCode) -> None:
    follower = filled(a_log(), 2)

    outcome = follower.append_as_follower(content, now_ms=0)

    assert isinstance(outcome, Refused)
    assert outcome.error == code
    assert follower.end_offset == 2


def test_empty_follower_begins_with_the_batch_that_straddles_its_start() -> None:
    """KAFKA-6975: the leader's log start may lie inside a batch."""
    follower = a_log()
    follower.truncate_fully_and_start_at(7)

    follower.append_as_follower(a_batch(b"a", b"b", b"c", base_offset=6), now_ms=0)

    assert (follower.log_start_offset, follower.end_offset) == (6, 9)


def test_chunk_larger_than_a_segment_is_written_batch_by_batch() -> None:
    leader, follower = filled(a_log(), 20), a_log(small_segments())

    follower.append_as_follower(all_bytes(leader), now_ms=0)

    assert all_bytes(follower) == all_bytes(leader)
    assert all(segment.size <= 600 for segment in follower.segments)
    check_log(follower)


# -- read ----------------------------------------------------------------------------------------------


def read_bases(log: Log, offset: int, max_bytes: int, limit: int, min_one: bool = True) -> list[int]:
    found = log.read(offset, max_bytes, limit, min_one)
    assert found is not None
    content = found.read()
    headers = list(batches(content))
    assert sum(header.size for header in headers) == len(content) == found.size, "whole batches alone"
    return [header.base_offset for header in headers]


@pytest.mark.parametrize("settings", [{}, {"index_interval_bytes": 100}])
def test_read_gives_whole_batches_within_its_bounds(settings: dict[str, int]) -> None:
    log = filled(a_log(LogConfig(**settings)), 20)  # type: ignore[arg-type]
    size = len(a_batch(bytes(50)))

    assert read_bases(log, 5, 3 * size, 20) in ([5], [5, 6], [5, 6, 7])
    assert read_bases(log, 5, size - 1, 20) == [5]
    assert read_bases(log, 5, size - 1, 20, min_one=False) == []
    assert read_bases(log, 5, 10**6, 9) == [5, 6, 7, 8]
    assert read_bases(log, 20, 10**6, 20) == []
    assert read_bases(log, 12, 10**6, 12) == []


def test_read_begins_with_the_batch_that_holds_the_offset() -> None:
    log = a_log()
    appended(log, a_batch(b"a", b"b", b"c"))
    appended(log, a_batch(b"d"))

    assert read_bases(log, 2, 10**6, 4) == [0, 3]


def test_batch_that_reaches_over_the_limit_is_left_out() -> None:
    log = a_log()
    appended(log, a_batch(b"a"))
    appended(log, a_batch(b"b", b"c", b"d"))

    assert read_bases(log, 0, 10**6, 3) == [0]


def test_read_outside_the_log_is_none() -> None:
    log = filled(a_log(), 3)
    log.set_high_watermark(3)
    log.raise_log_start_offset(2)

    assert log.read(1, 100, 3) is None
    assert log.read(4, 100, 9) is None
    assert log.read(2, 100, 9) is not None


def test_one_read_ends_with_its_segment() -> None:
    log = filled(a_log(small_segments()), 20)

    first = read_bases(log, 0, 10**6, 20)

    assert first[-1] + 1 == log.segments[1].base_offset


def test_read_from_a_gap_goes_on_behind_it() -> None:
    log = a_log()
    log.append_as_follower(a_batch(b"a") + a_batch(b"b", base_offset=10), now_ms=0)

    assert read_bases(log, 5, 10**6, 11) == [10]


def test_read_from_a_gap_between_segments_goes_on_in_the_next() -> None:
    log = a_log()
    log.append_as_follower(a_batch(b"a"), now_ms=0)
    log.roll(0)
    log.append_as_follower(a_batch(b"b", base_offset=10), now_ms=0)

    assert read_bases(log, 1, 10**6, 11) == [10]


def test_nothing_at_or_behind_the_limit_is_ever_read() -> None:
    """R11, over every offset and limit, for a log with rolls, against the tail's short cuts."""
    log = filled(a_log(small_segments()), 30)

    for offset in range(31):
        for limit in range(offset, 31):
            assert all(base < limit for base in read_bases(log, offset, 10**6, limit))


# -- roll ----------------------------------------------------------------------------------------------


def test_full_segment_is_rolled() -> None:
    log = filled(a_log(small_segments()), 20)

    assert len(log.segments) > 2
    assert all(segment.size <= 600 for segment in log.segments)
    assert files_of(log)[:4] == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        f"{log.segments[1].base_offset:020d}.index",
    ]
    check_log(log)


def test_time_rolls_by_the_records_own_time() -> None:
    log = a_log(LogConfig(segment_ms=1_000))
    for timestamp in (5_000, 6_000, 6_001, 6_500, 7_002):
        appended(log, a_batch(b"x", timestamp=timestamp), now_ms=99)

    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_records_without_time_roll_by_the_clock() -> None:
    log = a_log(LogConfig(segment_ms=1_000))
    for now_ms in (500, 1_000, 1_001, 1_500):
        appended(log, a_batch(b"x", timestamp=-1), now_ms=now_ms)

    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_compacted_topic_rolls_within_its_compaction_lag() -> None:
    log = a_log(LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=100))
    for timestamp in (1_000, 1_101):
        appended(log, a_batch(b"x", timestamp=timestamp))

    assert len(log.segments) == 2


def test_full_index_rolls() -> None:
    still = filled(a_log(LogConfig(index_interval_bytes=0, segment_index_bytes=48)), 20)
    moving = a_log(LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for at in range(20):
        appended(moving, a_batch(b"x", timestamp=at))

    assert max(len(segment.index) for segment in still.segments) == 48 // 8
    assert max(len(segment.times) for segment in moving.segments[:-1]) == 48 // 12 - 1, "room for a last one"


def test_offset_too_far_from_the_base_rolls() -> None:
    """KAFKA-6264: a relative offset has 31 bits."""
    log = a_log()
    far = 2**31 + 5
    log.append_as_follower(a_batch(b"a"), now_ms=0)

    log.append_as_follower(a_batch(b"b", base_offset=far), now_ms=0)

    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert read_bases(log, far, 100, far + 1) == [far]
    assert reopened(log, was_clean=False, gaps_are_losses=True).end_offset == far + 1


def test_rolling_an_empty_segment_that_begins_below_the_end_begins_one_there() -> None:
    log = a_log()
    appended(log, a_batch(b"one", b"two"))
    log.truncate_to(1)

    log.roll(2_000)

    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert appended(log, a_batch(b"three")).base_offset == 1


def test_rolling_an_empty_segment_does_nothing() -> None:
    """KAFKA-6388: never two segments of one name."""
    log = a_log()

    assert log.roll(0) is log.roll(0)
    appended(log, a_batch(b"a"))
    log.roll(0)
    log.roll(0)

    assert [segment.base_offset for segment in log.segments] == [0, 1]


# -- truncate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", range(21))
def test_truncated_log_is_the_prefix(offset: int) -> None:
    log = filled(a_log(small_segments()), 20)
    log.set_high_watermark(20)
    whole = all_bytes(log)

    assert log.truncate_to(offset) == (offset < 20)

    left = all_bytes(log)
    assert whole.startswith(left)
    assert (log.end_offset, log.high_watermark) == (offset, offset)
    assert len(left) == offset * len(a_batch(bytes(50)))
    check_log(log)
    assert appended(log, a_batch(b"on")).base_offset == offset
    check_log(log)


def test_cut_inside_a_batch_takes_the_batch_but_not_the_offsets() -> None:
    log = a_log()
    appended(log, a_batch(b"a"))
    appended(log, a_batch(b"b", b"c", b"d"))

    log.truncate_to(2)

    assert log.end_offset == 2
    assert [h.base_offset for h in headers_of(all_bytes(log))] == [0]
    assert appended(log, a_batch(b"e")).base_offset == 2


def test_truncation_to_the_end_drops_an_epoch_without_data() -> None:
    """KAFKA-10706: else a follower negotiates for ever."""
    log = filled(a_log(), 3, epoch=1)
    log.epochs.assign(2, 3)

    log.truncate_to(3)

    assert log.epochs.entries() == [(1, 0)]


def test_truncation_below_the_first_segment_begins_anew_there() -> None:
    log = filled(a_log(), 3)
    log.truncate_fully_and_start_at(100)
    filled(log, 2)

    log.truncate_to(50)

    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (50, 50, 50)
    assert log.epochs.entries() == []
    assert appended(log, a_batch(b"a")).base_offset == 50


def test_full_truncation_moves_start_end_and_watermark() -> None:
    """KAFKA-9491."""
    log = filled(a_log(small_segments()), 10)
    log.set_high_watermark(10)

    log.truncate_fully_and_start_at(77)

    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (77, 77, 77)
    check_log(log)


def test_flush_begun_before_a_cut_does_not_count_after_it() -> None:
    log = filled(a_log(), 10)
    work = log.flush_work()
    assert work is not None
    log.truncate_to(4)
    filled(log, 3)

    work()
    log.flushed(work)

    assert log.recovery_point <= 4


# -- flush ---------------------------------------------------------------------------------------------


def test_flush_messages_syncs_before_the_answer() -> None:
    log = a_log(LogConfig(flush_messages=3))

    filled(log, 2)
    assert log.recovery_point == 0
    filled(log, 1)

    assert log.recovery_point == 3


def test_flush_is_due_when_its_time_has_passed_and_something_was_written() -> None:
    log = a_log(LogConfig(flush_ms=100))
    assert not log.is_flush_due(500)
    filled(log, 1)
    assert log.is_flush_due(500)

    work = log.flush_work()
    assert work is not None
    work()
    log.flushed(work, 500)

    assert not log.is_flush_due(1_000)
    filled(log, 1)
    assert not log.is_flush_due(599)
    assert log.is_flush_due(600)
