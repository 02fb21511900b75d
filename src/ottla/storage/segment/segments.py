"""The segments of one log, in order of offset: find batches in them, begin a new one, drop old ones."""

from bisect import bisect_right
from collections.abc import Iterator

from ottla.records.batch import BatchHeader
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.segment.log_slice import LogSlice
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.txn_index import AbortedTransaction


class Segments:
    """Never empty: the last segment, ``active``, takes what is appended."""

    __slots__ = ("_all", "_home", "active")

    def __init__(self, home: PartitionHome, segments: list[Segment]) -> None:
        self._home = home
        self._all = segments
        self.active = segments[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, at: int) -> Segment:
        return self._all[at]

    def all(self) -> list[Segment]:
        """A copy of the list."""
        return list(self._all)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._all)

    # -- find --------------------------------------------------------------------------------------

    def _index_of(self, offset: int) -> int:
        segments = self._all
        if offset >= self.active.base_offset:
            return len(segments) - 1
        return max(0, bisect_right(segments, offset, key=_base_offset) - 1)

    def at(self, offset: int) -> Segment:
        """The segment whose range includes an offset; the first one for offsets below all."""
        return self._all[self._index_of(offset)]

    def since(self, offset: int) -> list[Segment]:
        """The segment whose range includes an offset, and all behind it."""
        return self._all[self._index_of(offset) :]

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, BatchHeader]]:
        """Every batch from the one that contains ``offset`` to the end."""
        for segment in self.since(offset):
            header = segment.locate(offset)
            if header is not None:
                for each in segment.scan(header.position):
                    yield segment, each

    # -- read --------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, end_offset: int, min_one_batch: bool
    ) -> LogSlice:
        """Whole batches of one segment from the one that contains ``offset``, all below ``limit_offset``.

        Never more than ``max_bytes``, except for a first batch that alone is larger, if ``min_one_batch``.
        """
        directory = self._home.directory
        found = self._find(offset)
        if found is None:
            return LogSlice(directory, None, 0, 0)
        segment, start = found
        end, is_behind = self._end_position(segment, limit_offset, end_offset)
        available = end - start
        if available > max_bytes:
            end = _last_boundary(segment, start, max_bytes, min_one_batch)
        file = segment.file() if end > start else None
        size = max(0, end - start)
        return LogSlice(
            directory, file, start, size, segment.base_offset, available=available, is_behind=is_behind
        )

    def _find(self, offset: int) -> tuple[Segment, int] | None:
        """Segment and position of the batch that contains an offset, or of the next one after a gap."""
        active = self.active
        position = active.tail.get(offset)
        if position is not None and position < active.size:
            return active, position
        segments = self._all
        for at in range(self._index_of(offset), len(segments)):
            header = segments[at].locate(offset)
            if header is not None:
                return segments[at], header.position
        return None

    def _end_position(self, segment: Segment, limit_offset: int, end_offset: int) -> tuple[int, bool]:
        """Where in a segment the batches below an offset end, and whether later segments have more."""
        if segment is not self.active:
            following = self._all[bisect_right(self._all, segment.base_offset, key=_base_offset)]
            if limit_offset >= following.base_offset:
                return segment.size, limit_offset > following.base_offset
        elif limit_offset >= end_offset:
            return segment.size, False
        elif (position := segment.tail.get(limit_offset)) is not None:
            return position, False
        header = segment.locate(limit_offset)
        return header.position if header is not None else segment.size, False

    def aborted_transactions(
        self, fetch_offset: int, found: LogSlice, limit_offset: int, end_offset: int
    ) -> list[AbortedTransaction]:
        """Aborted transactions that may have records in a slice; more than need be, never fewer."""
        at = self._index_of(max(found.segment_base_offset, self._all[0].base_offset))
        bound = self._all[at].index.offset_at_or_above_position(found.position + found.size)
        if bound is None:
            bound = self._all[at + 1].base_offset if at + 1 < len(self._all) else end_offset
        bound = min(bound, limit_offset)
        collected = []
        for segment in self.since(fetch_offset):
            for entry in segment.aborted:
                if entry.last_offset >= fetch_offset and entry.first_offset < bound:
                    collected.append(entry)
                if entry.last_stable_offset >= bound:
                    return collected
        return collected

    # -- change ------------------------------------------------------------------------------------

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Finish the active segment and begin another one."""
        self.active.rolled()
        segment = Segment(self._home, base_offset, created_ms=now_ms, modified_ms=now_ms)
        segment.create()
        self._all.append(segment)
        self.active = segment
        return segment

    def replace(self, old: list[Segment], new: Segment) -> None:
        """Put the segment that a compaction made in the place of its sources."""
        at = self._all.index(old[0])
        assert self._all[at : at + len(old)] == old, "only neighbours are cleaned into one segment"
        self._all[at : at + len(old)] = [new]

    def delete_first(self, count: int, delay_ms: int) -> None:
        """Delete the oldest segments; their files are removed later."""
        self._delete(self._all[:count], self._all[count:], delay_ms)

    def delete_behind(self, offset: int, delay_ms: int) -> None:
        """Delete every segment behind the one whose range includes an offset, newest first."""
        keep = self._index_of(offset) + 1
        self._delete(self._all[: keep - 1 : -1], self._all[:keep], delay_ms)

    def start_anew(self, base_offset: int, delay_ms: int) -> None:
        """Delete every segment, newest first, and begin an empty one."""
        modified_ms = self.active.modified_ms
        segment = Segment(self._home, base_offset, created_ms=modified_ms, modified_ms=modified_ms)
        self._delete(self._all[::-1], [segment], delay_ms)
        segment.create()
        self._home.directory.disk.sync_directory(self._home.path)

    def _delete(self, gone: list[Segment], rest: list[Segment], delay_ms: int) -> None:
        self._home.cancel_cleaning()
        if not gone:
            return
        directory = self._home.directory
        for segment in gone:
            for path in segment.rename_to_deleted():
                directory.discard(path, delay_ms)
        directory.disk.sync_directory(self._home.path)
        self._all = rest
        self.active = rest[-1]

    def close_files(self) -> None:
        for segment in self._all:
            segment.close_file()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _last_boundary(segment: Segment, start: int, max_bytes: int, min_one_batch: bool) -> int:
    """The last known batch boundary within ``max_bytes``, or the end of the first batch."""
    end = segment.index.floor_position(start + max_bytes)
    if end > start:
        return end
    end = start
    for header in segment.scan(start):
        if header.end_position > start + max_bytes:
            return header.end_position if end == start and min_one_batch else end
        end = header.end_position
    return end
