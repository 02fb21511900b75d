"""One of ``log.dirs``: its disk, whether it still works, and what waits there to be deleted."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.records.batch import CorruptRecords
from ottla.storage.checkpoints import LOG_START_OFFSETS, RECOVERY_POINTS, write_offsets
from ottla.storage.disk import Disk, File

if TYPE_CHECKING:
    from ottla.storage.segment import Segment

OPEN_FILES_MAX = 512
"""Segments kept open at a time; the least used are closed and opened again when needed."""

DELETED_SUFFIX = ".deleted"
"""A file that waits to be removed."""
DELETE_SUFFIX = "-delete"
"""A log's directory that waits to be removed."""
PARTITION_MAX = 2**31 - 1
_PARTITION_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})")


class CannotStart(Exception):
    """The log directories belong to someone else, or are in use."""


def partition_of(name: str) -> TopicPartition | None:
    """The partition a directory is named after, if it is one; ``backup-20260101120000`` is none."""
    found = _PARTITION_NAME.fullmatch(name)
    if found is None or int(found[2]) > PARTITION_MAX:
        return None
    return TopicPartition(found[1], int(found[2]))


class Cancellable(Protocol):
    """Work of another thread that ends soon once it is cancelled."""

    is_cancelled: bool


class OpenFiles:
    """Bounds how many segments hold an open file, by second chance."""

    __slots__ = ("_segments", "limit")

    def __init__(self, limit: int = OPEN_FILES_MAX) -> None:
        self.limit = limit
        self._segments: dict[int, Segment] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def opened(self, segment: "Segment") -> None:
        """A segment has opened its file: another one may have to let go of its own."""
        segments = self._segments
        segments[id(segment)] = segment
        while len(segments) > self.limit:
            key = next(iter(segments))
            oldest = segments.pop(key)
            if oldest.recently_used and oldest is not segment:
                oldest.recently_used = False
                segments[key] = oldest
            else:
                oldest.release_file()

    def closed(self, segment: "Segment") -> None:
        self._segments.pop(id(segment), None)


class LogDirectory:
    """A directory of partition directories. After its first failure nothing in it is written again."""

    __slots__ = (
        "_garbage",
        "disk",
        "failure",
        "forgotten",
        "high_watermark_rounds",
        "is_checkpointing",
        "log_starts",
        "open_files",
        "path",
        "recovery_points",
        "rolled",
    )

    def __init__(self, disk: Disk, path: str, open_files: OpenFiles | None = None) -> None:
        self.disk = disk
        self.path = path
        self.failure: str | None = None
        self.is_checkpointing = False
        """A worker is at the high watermarks."""
        self.high_watermark_rounds = 0
        """How often the loop itself has noted the high watermarks: a worker's that are older are void."""
        self.open_files = open_files if open_files is not None else OpenFiles()
        self.recovery_points: dict[TopicPartition, int] = {}
        """As they stand in the checkpoint on the disk."""
        self.log_starts: dict[TopicPartition, int] = {}
        """As they stand in the checkpoint on the disk."""
        self.forgotten: set[TopicPartition] = set()
        """Partitions that are gone while checkpoints on the disk may still speak of them."""
        self.rolled: set[TopicPartition] = set()
        """Logs with a finished segment that is not synced yet."""
        self._garbage: list[Garbage] = []

    def fail(self, error: OSError) -> NoReturn:
        """Take the directory offline for this error."""
        if self.failure is None:
            self.failure = str(error)
        raise LogDirectoryFailed(self.path, self.failure) from error

    def fail_as_corrupt(self, partition: TopicPartition, error: CorruptRecords) -> NoReturn:
        """Take the directory offline because it does not give back what was written to it."""
        self.fail(OSError(f"{partition} is corrupt: {error}"))

    def check_online(self) -> None:
        if self.failure is not None:
            raise LogDirectoryFailed(self.path, self.failure)

    def open(self, path: str, *, create: bool = False) -> File:
        return self.disk.open(path, create=create)

    def discard(self, path: str, delay_ms: int, home: "PartitionHome | None" = None) -> None:
        """Remove a file or directory after a delay, counted from the next call of ``take_garbage``.

        ``home``: the partition whose directory this is; it is not removed under a compaction.
        """
        self._garbage.append(Garbage(path, delay_ms, home))

    def keep(self, path: str) -> None:
        """What was to be removed is wanted after all."""
        self._garbage = [each for each in self._garbage if each.path != path]

    def take_garbage(self, now_ms: int) -> list[str]:
        """The discarded paths whose delay is over."""
        garbage, self._garbage = self._garbage, []
        due = []
        for each in garbage:
            if each.is_due(now_ms):
                due.append(each.path)
            else:
                self._garbage.append(each)
        return due

    def lower_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Make sure that a restart scans from ``offset``, before anything is written behind it."""
        if self.recovery_points.get(partition, 0) > offset:
            self.recovery_points[partition] = offset
            write_offsets(self.disk, self.path, RECOVERY_POINTS, self.recovery_points)

    def raise_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Let a restart know at once that all below ``offset`` is synced."""
        if self.recovery_points.get(partition, 0) < offset:
            self.recovery_points[partition] = offset
            write_offsets(self.disk, self.path, RECOVERY_POINTS, self.recovery_points)

    def note_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Let a restart know where a log begins, before the segments below are deleted."""
        if self.log_starts.get(partition, 0) < offset:
            self.log_starts[partition] = offset
            write_offsets(self.disk, self.path, LOG_START_OFFSETS, self.log_starts)


class Garbage:
    """A file or directory to be removed, and when."""

    __slots__ = ("_delay_ms", "_due_ms", "_home", "path")

    def __init__(self, path: str, delay_ms: int, home: "PartitionHome | None") -> None:
        self.path = path
        self._delay_ms = delay_ms
        self._due_ms: int | None = None
        self._home = home

    def is_due(self, now_ms: int) -> bool:
        """The first question starts the delay."""
        if self._due_ms is None:
            self._due_ms = now_ms + self._delay_ms
        is_in_use = self._home is not None and self._home.cleaning is not None
        return self._due_ms <= now_ms and not is_in_use


class PartitionHome:
    """Where a partition's files are; shared by its log and all its segments."""

    __slots__ = ("cleaning", "directory", "partition", "path")

    def __init__(self, directory: LogDirectory, partition: TopicPartition, path: str) -> None:
        self.directory = directory
        self.partition = partition
        self.path = path
        self.cleaning: Cancellable | None = None
        """A compaction of this log that a thread is at."""

    def cancel_cleaning(self) -> None:
        """To be called before files are taken away from under a compaction, or its result would do harm."""
        if self.cleaning is not None:
            self.cleaning.is_cancelled = True

    def file(self, base_offset: int, suffix: str) -> str:
        return f"{self.path}/{base_offset:020d}{suffix}"


class _HasHome(Protocol):
    home: PartitionHome


_Self = TypeVar("_Self", bound=_HasHome)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def guarded(
    method: Callable[Concatenate[_Self, _Arguments], _Result],
) -> Callable[Concatenate[_Self, _Arguments], _Result]:
    """Turn the disk's errors and lies into the directory's failure; refuse to touch a failed directory."""

    def guard(self: _Self, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        directory = self.home.directory
        directory.check_online()
        try:
            return method(self, *args, **kwargs)
        except OSError as error:
            directory.fail(error)
        except CorruptRecords as error:
            directory.fail_as_corrupt(self.home.partition, error)

    guard.__name__, guard.__doc__ = method.__name__, method.__doc__
    return guard
