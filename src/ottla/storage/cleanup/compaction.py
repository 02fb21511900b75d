"""Compaction: keep the newest record of every key, by copying segments without the rest.

A run touches only files of finished segments and writes new ones beside them (``.cleaned``), so a worker
thread may do it while the log goes on. ``swap_in`` then puts the result in place, if the log has not
changed meanwhile. Whoever removes the log's files cancels the run first; it stops at its next batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.records.batch import HEADER_SIZE, BatchHeader, CorruptRecords, crc_is_valid, read_header
from ottla.records.record import RecordFrame, frames, records_area
from ottla.records.retained import empty_batch, rewrite_retained
from ottla.records.validate import GROWTH_MAX
from ottla.storage.cleanup.plan import CompactionPlan, Source, group_sources
from ottla.storage.cleanup.transactions import TransactionTracker
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.file_names import CLEANED_SUFFIX, LOG_SUFFIX, SEGMENT_SUFFIXES, TXN_INDEX_SUFFIX
from ottla.storage.disk.port import File
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.txn_index import AbortedTransaction

KEY_OVERHEAD_BYTES = 120
"""The memory of a key in the map, beside its own bytes."""
MAP_BYTES_MAX = 128 * 1024 * 1024


class CleanedSegment(Segment):
    """A segment being written under ``.cleaned`` names."""

    __slots__ = ()

    def path(self, suffix: str) -> str:
        return super().path(suffix) + CLEANED_SUFFIX

    def file(self) -> File:
        assert self._file is not None, "a cleaned segment is created before it is written"
        return self._file

    def create(self) -> None:
        self.remove_files()
        self._file = self.home.directory.open(self.path(LOG_SUFFIX), create=True)
        self._aborted = []
        self.begin_rebuild()

    def remove_files(self) -> None:
        disk = self.home.directory.disk
        for suffix in SEGMENT_SUFFIXES:
            if disk.exists(self.path(suffix)):
                disk.remove(self.path(suffix))

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Write the indexes and sync everything."""
        disk = self.home.directory.disk
        paths = self.save_indexes()
        if aborted:
            self.save_aborted(aborted)
            paths.append(self.path(TXN_INDEX_SUFFIX))
        self.file().sync()
        for path in paths:
            disk.sync_file(path)
        self._file = None


@dataclass(slots=True)
class CleanedGroup:
    """Segments, and the one that replaces them."""

    sources: list[Source]
    cleaned: CleanedSegment


@dataclass(slots=True)
class CompactionResult:
    """What a run wrote, and where the dirty part begins now."""

    cuts: int
    first_dirty_offset: int
    groups: list[CleanedGroup] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """A batch of the log is corrupt: nothing was changed, and the log is not compacted again."""

    reason: str


class KeyMap:
    """The newest offset of every key in the dirty part, up to ``last_offset``."""

    __slots__ = ("_bytes", "_bytes_max", "_offsets", "last_offset")

    def __init__(self, bytes_max: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._bytes = 0
        self._bytes_max = bytes_max
        self.last_offset = -1

    def put(self, key: bytes, offset: int) -> bool:
        """Note a record; False if the map is full. The first batch always fits."""
        if key not in self._offsets:
            cost = len(key) + KEY_OVERHEAD_BYTES
            if self._bytes + cost > self._bytes_max and self.last_offset >= 0:
                return False
            self._bytes += cost
        self._offsets[key] = offset
        return True

    def newest(self, key: bytes) -> int:
        return self._offsets.get(key, -1)


def discard(result: CompactionResult) -> None:
    """Remove what a run has written."""
    for group in result.groups:
        group.cleaned.remove_files()


def drop(directory: LogDirectory, result: CompactionResult) -> None:
    """The same for a log that may be deleted meanwhile. Raises ``LogDirectoryFailed``."""
    try:
        discard(result)
    except FileNotFoundError:
        return
    except OSError as error:
        directory.fail(error)


class RunCancelled(Exception):
    """The run was cancelled."""


class Compaction:
    """One run over one log. Call it in a worker; give the result to ``swap_in``."""

    __slots__ = ("_directory", "_map_bytes_max", "_plan", "is_cancelled")

    def __init__(
        self, directory: LogDirectory, plan: CompactionPlan, map_bytes_max: int = MAP_BYTES_MAX
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._map_bytes_max = map_bytes_max
        self.is_cancelled = False
        """Set by the loop; from then on a missing file is not a disk failure."""

    def __call__(self) -> CompactionResult | Uncleanable | None:
        """Write the cleaned segments; ``None`` if that was cancelled. Raises ``LogDirectoryFailed``."""
        result = CompactionResult(self._plan.cuts, self._plan.first_dirty_offset)
        instead: Uncleanable | None = None
        try:
            self._run(result)
            return result
        except RunCancelled:
            pass
        except CorruptRecords as error:
            if not self.is_cancelled:
                instead = Uncleanable(str(error))
        except OSError as error:
            if not (self.is_cancelled and isinstance(error, FileNotFoundError)):
                self._directory.fail(error)
        drop(self._directory, result)
        return instead

    def _run(self, result: CompactionResult) -> None:
        plan = self._plan
        keys = self._newest_offsets()
        result.first_dirty_offset = keys.last_offset + 1
        tracker = TransactionTracker()
        for group in group_sources(plan, keys.last_offset + 1):
            first = group[0].segment
            cleaned = CleanedSegment(
                first.home,
                first.base_offset,
                created_ms=first.created_ms,
                modified_ms=group[-1].segment.modified_ms,
            )
            result.groups.append(CleanedGroup(group, cleaned))
            cleaned.create()
            tracker.kept = []
            for source in group:
                tracker.add_aborted(self._aborted_of(source))
                self._clean_into(cleaned, source, keys, tracker)
            cleaned.finish(tracker.kept)
        if result.groups:
            self._directory.disk.sync_directory(result.groups[0].cleaned.home.path)

    def _aborted_of(self, source: Source) -> list[AbortedTransaction]:
        """Aborted transactions with data in this segment; their markers may be in later ones."""
        return [
            entry
            for entry in self._plan.aborted
            if entry.first_offset < source.end_offset and entry.last_offset >= source.base_offset
        ]

    # -- which record is the newest of its key -----------------------------------------------------

    def _newest_offsets(self) -> KeyMap:
        plan = self._plan
        keys = KeyMap(self._map_bytes_max)
        tracker = TransactionTracker()
        for source in plan.sources:
            if source.end_offset <= plan.first_dirty_offset:
                continue
            aborted = self._aborted_of(source)
            # Skip transactions that ended in the clean part: their markers are not read here.
            tracker.add_aborted([each for each in aborted if each.last_offset >= plan.first_dirty_offset])
            for header, content in self._batches(source):
                if header.last_offset < plan.first_dirty_offset:
                    continue
                if not self._map_batch(keys, tracker, header, content):
                    return keys
                keys.last_offset = header.last_offset
            keys.last_offset = max(
                keys.last_offset, min(source.end_offset, plan.first_uncleanable_offset) - 1
            )
        return keys

    def _map_batch(
        self, keys: KeyMap, tracker: TransactionTracker, header: BatchHeader, content: bytes
    ) -> bool:
        if header.is_control:
            tracker.marker(header, content)
            return True
        if tracker.data(header):
            return True
        opened = self._open(header, content)
        if opened is None:
            return True
        area, found = opened
        for frame in found:
            offset = header.base_offset + frame.offset_delta
            if frame.key_length < 0 or offset < self._plan.first_dirty_offset:
                continue
            if not keys.put(area[frame.key_start : frame.key_start + frame.key_length], offset):
                return False
        return True

    # -- copy what stays ---------------------------------------------------------------------------

    def _clean_into(
        self, cleaned: CleanedSegment, source: Source, keys: KeyMap, tracker: TransactionTracker
    ) -> None:
        interval_bytes = self._plan.config.index_interval_bytes
        for header, content in self._batches(source):
            kept = self._retain(header, content, keys, tracker)
            if kept is not None:
                cleaned.append(kept, [read_header(kept)], interval_bytes)

    def _retain(
        self, header: BatchHeader, content: bytes, keys: KeyMap, tracker: TransactionTracker
    ) -> bytes | bytearray | None:
        """The batch with what stays of it, or ``None`` if nothing does."""
        plan = self._plan
        may_go = tracker.marker(header, content) if header.is_control else tracker.data(header)
        horizon_ms = header.delete_horizon_ms
        if header.is_control:
            discard = may_go and horizon_ms is not None and horizon_ms <= plan.now_ms
        else:
            discard = may_go
        keep_empty = self._is_last_of_producer(header) or header.end_offset == plan.first_uncleanable_offset
        if discard:
            return empty_batch(header) if keep_empty else None
        opened = self._open(header, content)
        if opened is None:
            return content
        area, found = opened
        kept = found if header.is_control else self._kept(header, area, found, keys)
        if not kept:
            return empty_batch(header) if keep_empty else None
        has_tombstone = any(frame.value_length < 0 for frame in kept)
        needs_horizon = horizon_ms is None and (has_tombstone or (may_go and header.is_control))
        if needs_horizon:
            return rewrite_retained(header, area, kept, plan.now_ms + plan.config.delete_retention_ms)
        return content if len(kept) == len(found) else rewrite_retained(header, area, kept, horizon_ms)

    def _kept(
        self, header: BatchHeader, area: bytes, found: list[RecordFrame], keys: KeyMap
    ) -> list[RecordFrame]:
        horizon_ms = header.delete_horizon_ms
        tombstones_stay = horizon_ms is None or self._plan.now_ms < horizon_ms
        kept = []
        for frame in found:
            offset = header.base_offset + frame.offset_delta
            if offset > keys.last_offset:
                kept.append(frame)
            elif frame.key_length >= 0 and (frame.value_length >= 0 or tombstones_stay):
                key = area[frame.key_start : frame.key_start + frame.key_length]
                if offset >= keys.newest(key):
                    kept.append(frame)
        return kept

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._plan.last_of_producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    # -- reading -----------------------------------------------------------------------------------

    def _open(self, header: BatchHeader, content: bytes) -> tuple[bytes, list[RecordFrame]] | None:
        """A batch's records; ``None`` if they cannot be read: then the batch stays as it is."""
        limit = GROWTH_MAX * max(self._plan.config.max_message_bytes, header.size)
        try:
            area = bytes(records_area(content, header._replace(position=0), limit))
            return area, list(frames(area, header.record_count))
        except CorruptRecords:
            return None

    def _batches(self, source: Source) -> Iterator[tuple[BatchHeader, bytes]]:
        file = self._directory.disk.open(source.segment.path(LOG_SUFFIX))
        position, expected = 0, source.base_offset
        while source.size - position >= HEADER_SIZE:
            if self.is_cancelled:
                raise RunCancelled
            header = read_header(file.pread(HEADER_SIZE, position))
            content = file.pread(header.size, position)
            is_in_place = expected <= header.base_offset <= header.last_offset < source.end_offset
            if not is_in_place or len(content) != header.size or not crc_is_valid(content, header):
                raise CorruptRecords(f"the batch at position {position} is not as it was written")
            yield header._replace(position=position), content
            position, expected = position + header.size, header.end_offset
