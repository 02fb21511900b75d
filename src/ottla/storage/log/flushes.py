"""How far a log is synced, and what its next flush has to sync."""

from ottla.storage.disk.directory import PartitionHome
from ottla.storage.disk.file_names import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from ottla.storage.log.outcomes import FlushWork
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments


class Flushes:
    """The recovery point, and the small files and directories that changed since the last flush."""

    __slots__ = ("_flushed_at_ms", "_home", "_paths", "_segments", "recovery_point")

    def __init__(self, home: PartitionHome, segments: Segments, recovery_point: int) -> None:
        self._home = home
        self._segments = segments
        self._paths: set[str] = set()
        self._flushed_at_ms = 0
        self.recovery_point = recovery_point
        """Everything below this offset is synced."""

    def add(self, *paths: str) -> None:
        """Files that were written, and directories whose entries changed."""
        self._paths.update(paths)

    def replace(self, name: str, content: bytes) -> None:
        """Replace a file of the partition in one step; the next flush syncs it."""
        path = f"{self._home.path}/{name}"
        disk = self._home.directory.disk
        disk.write_file(path + TEMPORARY_SUFFIX, content)
        disk.rename(path + TEMPORARY_SUFFIX, path)
        self.add(path, self._home.path)

    def is_due(self, end_offset: int, flush_ms: int, now_ms: int) -> bool:
        """Whether ``flush.ms`` has passed since the last flush and there is anything to sync."""
        return now_ms - self._flushed_at_ms >= flush_ms and self.recovery_point < end_offset

    def work(self, end_offset: int, cuts: int) -> FlushWork:
        """What must be synced so that everything up to now survives a power cut."""
        paths, segments = self._take(end_offset)
        files = [segment.file() for segment in segments]
        return FlushWork(self._home.directory, files, paths, end_offset, cuts)

    def closing_work(self, end_offset: int, cuts: int) -> FlushWork:
        """The same for a log that closes, its last indexes included.

        It holds no open file: thousands of logs may have theirs at a time.
        """
        paths, segments = self._take(end_offset)
        active = self._segments.active
        paths += [segment.path(LOG_SUFFIX) for segment in segments]
        paths += active.save_indexes()
        if active.has_aborted:
            paths.append(active.path(TXN_INDEX_SUFFIX))
        return FlushWork(self._home.directory, [], paths, end_offset, cuts)

    def _take(self, end_offset: int) -> tuple[list[str], list[Segment]]:
        """The paths to sync, files before the directory that names them; and the segments to sync."""
        paths = sorted(self._paths, reverse=True)
        self._paths.clear()
        if self.recovery_point >= end_offset:
            return paths, []
        segments = self._segments.since(self.recovery_point - 1)
        for segment in segments[:-1]:
            segment.save_indexes()
            paths += [segment.path(suffix) for suffix in INDEX_SUFFIXES]
        paths += [segment.path(SNAPSHOT_SUFFIX) for segment in segments[1:]]
        if len(segments) > 1:
            paths.append(self._home.path)
        self._home.directory.rolled.discard(self._home.partition)
        return paths, segments

    def done(self, work: FlushWork, cuts: int, now_ms: int) -> None:
        """The work is done: raise the recovery point to its end, unless the log was cut meanwhile."""
        self._flushed_at_ms = now_ms
        if work.cuts == cuts:
            self.recovery_point = max(self.recovery_point, work.end_offset)
