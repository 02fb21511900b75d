"""One of ``log.dirs``: its disk, whether it has failed, and which of its files wait to be removed."""

from collections.abc import Callable
from typing import Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.records.batch import CorruptRecords
from ottla.storage.disk.checkpoints import LOG_START_OFFSETS, RECOVERY_POINTS, write_offsets
from ottla.storage.disk.open_files import OpenFiles
from ottla.storage.disk.port import Disk, File


class Cancellable(Protocol):
    """Work of another thread that stops soon after it is cancelled."""

    is_cancelled: bool


class LogDirectory:
    """A directory of partition directories. After its first failure nothing in it is written again."""

    def __init__(self, disk: Disk, path: str, open_files: OpenFiles | None = None) -> None:
        self.disk = disk
        self.path = path
        self.failure: str | None = None
        self.is_checkpointing = False
        """A worker is writing the high watermarks."""
        self.high_watermark_rounds = 0
        """How often the loop itself has written the high watermarks: older work of a worker is void."""
        self.open_files = open_files if open_files is not None else OpenFiles()
        self.recovery_points: dict[TopicPartition, int] = {}
        """As they stand in the checkpoint on the disk."""
        self.log_starts: dict[TopicPartition, int] = {}
        """As they stand in the checkpoint on the disk."""
        self.forgotten: set[TopicPartition] = set()
        """Partitions that were deleted but may still have rows in checkpoints on the disk."""
        self.rolled: set[TopicPartition] = set()
        """Logs with a finished segment that is not synced yet."""
        self._garbage: list[Garbage] = []

    def fail(self, error: OSError) -> NoReturn:
        """Take the directory offline for this error."""
        if self.failure is None:
            self.failure = str(error)
        raise LogDirectoryFailed(self.path, self.failure) from error

    def fail_as_corrupt(self, partition: TopicPartition, error: CorruptRecords) -> NoReturn:
        """Take the directory offline because what it returns is not what was written to it."""
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
        """Do not remove a discarded path after all."""
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
        """Write a lower recovery point before anything is written behind it: a restart must scan that."""
        if self.recovery_points.get(partition, 0) > offset:
            self.recovery_points[partition] = offset
            write_offsets(self.disk, self.path, RECOVERY_POINTS, self.recovery_points)

    def raise_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Write a higher recovery point at once: everything below ``offset`` is synced."""
        if self.recovery_points.get(partition, 0) < offset:
            self.recovery_points[partition] = offset
            write_offsets(self.disk, self.path, RECOVERY_POINTS, self.recovery_points)

    def note_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Write where a log begins, before the segments below are deleted."""
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
        """The first call starts the delay."""
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
        """The compaction of this log that a thread is running."""

    def cancel_cleaning(self) -> None:
        """Call this before removing files that a compaction may read: its result must not be used."""
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
    """Take the directory offline on disk errors and corrupt data; refuse to touch a failed directory."""

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
