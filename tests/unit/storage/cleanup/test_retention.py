"""Old segments go, oldest first, and never what is not yet replicated."""

from __future__ import annotations

import pytest

from ottla.config.log import LogConfig
from ottla.storage.cleanup.retention import RetentionReason, apply_retention, plan_retention
from ottla.storage.log.log import Log
from support.logs.builders import a_batch, a_log, appended, files_of, reopened
from support.logs.truth import check_log

BATCH = len(a_batch(bytes(30)))


def a_log_of(segments: int, **settings: object) -> Log:
    """Two batches a segment, timestamps 1000, 1001, …, all replicated."""
    log = a_log(LogConfig(**{"segment_bytes": 2 * BATCH, "retention_ms": -1, **settings}))  # type: ignore[arg-type]
    for at in range(2 * segments):
        appended(log, a_batch(bytes(30), timestamp=1_000 + at))
    log.set_high_watermark(log.end_offset)
    return log


@pytest.mark.parametrize(
    ("settings", "now_ms", "start", "reason"),
    [
        ({"retention_bytes": 4 * BATCH}, 0, 6, RetentionReason.SIZE),
        ({"retention_bytes": 4 * BATCH + 1}, 0, 4, RetentionReason.SIZE),
        ({"retention_ms": 100}, 1_103, 2, RetentionReason.TIME),
        ({"retention_ms": 100}, 1_102, 2, RetentionReason.TIME),
        ({"retention_ms": 100}, 1_101, 0, None),
        ({}, 10**15, 0, None),
    ],
)
def test_what_is_over_the_limit_goes(
    settings: dict[str, int], now_ms: int, start: int, reason: RetentionReason | None
) -> None:
    log = a_log_of(5, **settings)

    done = apply_retention(log, now_ms)

    assert log.log_start_offset == start
    assert [plan.reason for plan in done] == ([reason] if reason else [])
    assert log.end_offset == 10
    check_log(log)


def test_nothing_at_or_behind_the_high_watermark_goes() -> None:
    """KAFKA-5634."""
    log = a_log_of(5, retention_ms=0)
    log.high_watermark = 5

    apply_retention(log, 10**15)

    assert log.log_start_offset == 4


def test_when_everything_is_old_an_empty_segment_remains_at_the_end() -> None:
    log = a_log_of(3, retention_ms=0)

    apply_retention(log, 10**15)

    assert (log.log_start_offset, log.end_offset) == (6, 6)
    assert [(segment.base_offset, segment.size) for segment in log.segments] == [(6, 0)]
    assert plan_retention(log, 10**15) is None
    assert appended(log, a_batch(b"on")).base_offset == 6


def test_deleted_records_take_their_segments_even_of_a_compacted_topic() -> None:
    log = a_log_of(5, cleanup_policy=frozenset({"compact"}), retention_bytes=0)
    log.raise_log_start_offset(5)

    done = apply_retention(log, 0)

    assert [plan.reason for plan in done] == [RetentionReason.LOG_START]
    assert log.segments[0].base_offset == 4
    assert log.log_start_offset == 5


def test_first_epoch_begins_at_the_new_start() -> None:
    log = a_log_of(5, retention_bytes=4 * BATCH)

    apply_retention(log, 0)

    assert log.epochs.entries() == [(0, 6)]


def test_deleted_files_stay_for_their_delay() -> None:
    log = a_log_of(5, retention_bytes=4 * BATCH, file_delete_delay_ms=60_000)
    apply_retention(log, 0)
    directory = log.home.directory

    assert "00000000000000000000.log.deleted" in files_of(log)
    assert directory.take_garbage(0) == []
    assert directory.take_garbage(59_999) == []
    assert f"{log.path}/00000000000000000000.log.deleted" in directory.take_garbage(60_000)


def test_segment_without_timestamps_goes_by_its_files_time() -> None:
    log = a_log(LogConfig(segment_bytes=2 * BATCH, retention_ms=100))
    for _ in range(4):
        appended(log, a_batch(bytes(30), timestamp=-1), now_ms=5_000)
    log.set_high_watermark(4)

    apply_retention(log, 5_100)
    assert log.log_start_offset == 0
    apply_retention(log, 5_101)

    assert log.log_start_offset == 4


def test_active_segment_without_timestamps_is_as_young_as_its_last_append() -> None:
    log = a_log(LogConfig(retention_ms=100))
    appended(log, a_batch(bytes(30), timestamp=-1), now_ms=5_000)
    appended(log, a_batch(bytes(30), timestamp=-1), now_ms=9_000)
    log.set_high_watermark(2)

    assert apply_retention(log, 9_100) == []
    assert apply_retention(log, 9_101) != []


def test_rolling_makes_no_segment_younger() -> None:
    log = a_log(LogConfig(retention_ms=100))
    appended(log, a_batch(bytes(30), timestamp=-1), now_ms=5_000)
    log.set_high_watermark(1)

    log.roll(9_000)

    assert apply_retention(log, 9_000) != []


def test_log_that_was_begun_anew_is_as_old_as_its_last_append() -> None:
    log = a_log(LogConfig(retention_ms=100))
    appended(log, a_batch(bytes(30), timestamp=-1), now_ms=5_000)

    log.truncate_fully_and_start_at(7)

    assert log.active_segment.largest_timestamp == 5_000


def test_log_start_never_falls_nor_passes_the_watermark() -> None:
    """R15."""
    log = a_log_of(5)
    log.high_watermark = 7

    assert log.raise_log_start_offset(9)
    assert log.log_start_offset == 7
    assert not log.raise_log_start_offset(3)
    assert log.log_start_offset == 7


def test_reader_of_a_deleted_segment_keeps_its_bytes() -> None:
    log = a_log_of(5, retention_bytes=4 * BATCH)
    found = log.read(0, 10_000, 10)
    assert found is not None

    apply_retention(log, 0)

    assert len(found.read()) == 2 * BATCH


def test_clean_restart_keeps_the_start() -> None:
    log = a_log_of(5, retention_bytes=4 * BATCH)
    apply_retention(log, 0)
    log.close()

    assert reopened(log, was_clean=True).log_start_offset == 6
