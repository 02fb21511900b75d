"""Which part of a compacted log is dirty, whether it is worth cleaning, and in which groups of segments."""

from dataclasses import dataclass

from ottla.config.log import LONG_MAX, NEVER_MS, LogConfig
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.storage.segment.txn_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to be cleaned, as it was when the plan was made: the run reads its files, not the object."""

    segment: Segment
    size: int
    end_offset: int
    index_entries: int

    @property
    def base_offset(self) -> int:
        return self.segment.base_offset


@dataclass(frozen=True, slots=True)
class LastOfProducer:
    """Which batch of a producer must stay: its last data batch, or else the marker of its last epoch."""

    last_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a run needs to know; made by the loop, used by a worker."""

    config: LogConfig
    sources: tuple[Source, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    last_of_producers: dict[int, LastOfProducer]
    aborted: tuple[AbortedTransaction, ...]
    dirty_ratio: float
    cuts: int


def plan_compaction(log: Log, now_ms: int) -> CompactionPlan | None:
    """A plan if enough of the log is dirty, or a dirty part is too old; else ``None``."""
    config = log.config
    if not config.is_compacted:
        return None
    segments = log.segments
    dirty = _first_dirty_offset(log)
    uncleanable = _first_uncleanable_offset(log, segments, dirty, now_ms)
    if uncleanable <= dirty:
        return None
    clean_bytes = sum(each.size for each in segments if _end_of(segments, each) <= dirty)
    dirty_bytes = sum(
        each.size for each in segments if each.base_offset < uncleanable and _end_of(segments, each) > dirty
    )
    total = clean_bytes + dirty_bytes
    ratio = dirty_bytes / total if total else 0.0
    if ratio <= config.min_cleanable_dirty_ratio and not _is_too_old(
        log, segments, dirty, uncleanable, now_ms
    ):
        return None
    sources = tuple(
        Source(each, each.size, _end_of(segments, each), len(each.index))
        for each in segments
        if each.base_offset < uncleanable
    )
    producers = {
        producer_id: LastOfProducer(state.last_offset, state.epoch)
        for producer_id, state in log.producers.items()
    }
    aborted = tuple(entry for each in segments for entry in each.aborted)
    return CompactionPlan(config, sources, dirty, uncleanable, now_ms, producers, aborted, ratio, log.cuts)


def _first_dirty_offset(log: Log) -> int:
    first = log.first_dirty_offset
    return first if log.log_start_offset <= first <= log.end_offset else log.log_start_offset


def _first_uncleanable_offset(log: Log, segments: list[Segment], dirty: int, now_ms: int) -> int:
    """The base of the first segment that is active, unstable, or too young."""
    bound = min(log.last_stable_offset, segments[-1].base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for each in segments[:-1]:
            if _end_of(segments, each) > dirty and each.largest_timestamp > now_ms - lag_ms:
                bound = min(bound, each.base_offset)
                break
    holding = [each.base_offset for each in segments if each.base_offset <= bound]
    return holding[-1] if holding else bound


def _end_of(segments: list[Segment], segment: Segment) -> int:
    """Where the next segment begins; the last one has no end."""
    at = segments.index(segment) + 1
    return segments[at].base_offset if at < len(segments) else LONG_MAX


def _is_too_old(log: Log, segments: list[Segment], dirty: int, uncleanable: int, now_ms: int) -> bool:
    """Whether some dirty segment has waited longer than ``max.compaction.lag.ms``."""
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= NEVER_MS:
        return False
    firsts = [
        each.first_timestamp
        for each in segments[:-1]
        if each.base_offset < uncleanable and _end_of(segments, each) > dirty
    ]
    return any(0 < first < now_ms - lag_ms for first in firsts)


def group_sources(plan: CompactionPlan, end_offset: int) -> list[list[Source]]:
    """Neighbouring segments that fit into one after cleaning."""
    config = plan.config
    groups: list[list[Source]] = []
    log_bytes = index_entries = 0
    for source in plan.sources:
        if source.base_offset >= end_offset:
            break
        fits = (
            bool(groups)
            and log_bytes + source.size <= config.segment_bytes
            and index_entries + source.index_entries <= config.segment_index_bytes // 12
            and (
                source.size == 0
                or min(source.end_offset, plan.first_uncleanable_offset) - 1 - groups[-1][0].base_offset
                <= RELATIVE_OFFSET_MAX
            )
        )
        if fits:
            groups[-1].append(source)
            log_bytes += source.size
            index_entries += source.index_entries
        else:
            groups.append([source])
            log_bytes, index_entries = source.size, source.index_entries
    return groups
