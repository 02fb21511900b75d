"""Delete a log's oldest segments: below its start, over its size, or older than its retention time."""

from enum import Enum
from typing import NamedTuple

from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment


class RetentionReason(Enum):
    """Why segments are deleted."""

    LOG_START = "below the log start offset"
    SIZE = "over retention.bytes"
    TIME = "older than retention.ms"


class RetentionPlan(NamedTuple):
    """The number of oldest segments to delete, and why."""

    segment_count: int
    reason: RetentionReason


def plan_retention(log: Log, now_ms: int) -> RetentionPlan | None:
    """The first reason to delete that applies; never segments that reach the high watermark."""
    segments = log.segments
    removable = _removable(log, segments)
    counts = [(RetentionReason.LOG_START, _below_start(log, segments))]
    if log.config.deletes_old_segments:
        counts.append((RetentionReason.SIZE, _over_size(log, segments)))
        counts.append((RetentionReason.TIME, _past_time(log, segments[:removable], now_ms)))
    for reason, count in counts:
        if (count := min(count, removable)) > 0:
            return RetentionPlan(count, reason)
    return None


def apply_retention(log: Log, now_ms: int) -> list[RetentionPlan]:
    """Delete the old segments of one log; returns what was deleted and why."""
    done = []
    while (plan := _raise_start(log, now_ms)) is not None:
        log.drop_first_segments(plan.segment_count, now_ms)
        done.append(plan)
    return done


def _raise_start(log: Log, now_ms: int) -> RetentionPlan | None:
    """Raise the log start before deleting: readers may no longer ask for the segments.

    A log that is being compacted keeps its segments until the run has ended.
    """
    if log.home.cleaning is not None:
        return None
    try:
        plan = plan_retention(log, now_ms)
    except OSError as error:
        log.home.directory.fail(error)
    if plan is not None:
        log.raise_log_start_offset(log.start_without(plan.segment_count, now_ms))
    return plan


def _removable(log: Log, segments: list[Segment]) -> int:
    """How many segments end at or below the high watermark, without an empty last one."""
    ends = [segment.base_offset for segment in segments[1:]] + [log.end_offset]
    count = 0
    for segment, end in zip(segments, ends, strict=True):
        is_empty_last = segment is segments[-1] and segment.size == 0
        if is_empty_last or log.high_watermark < end:
            break
        count += 1
    return count


def _below_start(log: Log, segments: list[Segment]) -> int:
    return sum(1 for following in segments[1:] if following.base_offset <= log.log_start_offset)


def _over_size(log: Log, segments: list[Segment]) -> int:
    if log.config.retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - log.config.retention_bytes
    count = 0
    for segment in segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _past_time(log: Log, segments: list[Segment], now_ms: int) -> int:
    if log.config.retention_ms < 0:
        return 0
    count = 0
    for segment in segments:
        if now_ms - segment.largest_timestamp <= log.config.retention_ms:
            break
        count += 1
    return count
