"""When a segment has lived long enough, and its jitter."""

from __future__ import annotations

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.storage.log.log import Log
from ottla.storage.log.recovery import create_log
from support.logs.builders import a_batch, a_log, appended

HOUR_MS = 3_600_000


def logs_of(config: LogConfig, count: int = 40) -> list[Log]:
    directory = a_log().home.directory
    return [
        create_log(directory, TopicPartition("jitter", number), config, now_ms=0) for number in range(count)
    ]


def rolled(logs: list[Log], timestamp: int) -> int:
    """Append to each; how many have more than one segment then?"""
    for log in logs:
        appended(log, a_batch(timestamp=timestamp))
    return sum(len(log.segments) > 1 for log in logs)


def test_segments_of_one_age_end_at_different_times() -> None:
    logs = logs_of(LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS // 2))

    assert rolled(logs, 0) == 0
    assert rolled(logs, HOUR_MS // 2) == 0
    assert 5 < rolled(logs, HOUR_MS * 3 // 4) < 35
    assert rolled(logs, HOUR_MS + 1) == 40


def test_jitter_takes_less_than_a_whole_life_of_a_segment() -> None:
    logs = logs_of(LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=10 * HOUR_MS))

    assert rolled(logs, 0) == 0
    assert rolled(logs, 0) == 0, "not every batch its own segment"
    assert 0 < rolled(logs, HOUR_MS // 2) < 40


def test_lag_of_compaction_shortens_a_segments_life_and_bounds_its_jitter() -> None:
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        segment_ms=100 * HOUR_MS,
        segment_jitter_ms=50 * HOUR_MS,
        max_compaction_lag_ms=HOUR_MS,
    )
    logs = logs_of(config)

    assert rolled(logs, 0) == 0
    assert rolled(logs, 0) == 0
    assert 0 < rolled(logs, HOUR_MS // 2) < 40
    assert rolled(logs, HOUR_MS + 1) == 40


def test_without_jitter_all_end_together() -> None:
    logs = logs_of(LogConfig(segment_ms=HOUR_MS))

    assert rolled(logs, 0) == 0
    assert rolled(logs, HOUR_MS) == 0
    assert rolled(logs, HOUR_MS + 1) == 40


def test_a_life_of_no_length_has_no_jitter() -> None:
    logs = logs_of(LogConfig(segment_ms=0, segment_jitter_ms=HOUR_MS), count=1)

    assert rolled(logs, 0) == 0
    assert rolled(logs, 1) == 1


def test_segment_ends_at_the_same_moment_when_its_life_is_lived_again() -> None:
    config = LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS)

    first, second = logs_of(config), logs_of(config)
    for logs in (first, second):
        rolled(logs, 0)
        rolled(logs, HOUR_MS // 2)

    assert [len(log.segments) for log in first] == [len(log.segments) for log in second]
