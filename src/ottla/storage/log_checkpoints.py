"""What is noted of a broker's logs in the checkpoints of their directories."""

from collections.abc import Mapping

from ottla.model.ids import TopicPartition
from ottla.storage.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    write_offsets,
)
from ottla.storage.disk import Disk
from ottla.storage.future_logs import FutureLogs
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory
from ottla.storage.outcomes import HighWatermarkWork


class LogCheckpoints:
    """The logs of a broker, by directory; whoever changes them sees to it that the checkpoints follow."""

    def __init__(self, disk: Disk, directories: dict[str, LogDirectory]) -> None:
        self._disk = disk
        self.directories = directories
        self.logs: dict[TopicPartition, Log] = {}
        self.futures = FutureLogs()

    def _live(self) -> list[tuple[str, LogDirectory]]:
        return [(path, each) for path, each in self.directories.items() if each.failure is None]

    def _logs_in(self, path: str) -> list[Log]:
        return [each for each in self.logs.values() if each.directory == path]

    def _futures_in(self, path: str) -> list[Log]:
        return [each for each in self.futures if each.directory == path]

    def checkpoint_high_watermarks(self) -> None:
        """Note every log's high watermark; raises ``LogDirectoryFailed`` for the first that cannot."""
        for work in self.high_watermark_work():
            work()
            work.put_in_place()

    def high_watermark_work(self) -> list[HighWatermarkWork]:
        """The same, to be done by a worker and then put in place; a directory still at its last one is left
        out."""
        works = []
        for path, directory in self._live():
            values = {each.partition: each.high_watermark for each in self._logs_in(path)}
            if not directory.is_checkpointing:
                works.append(HighWatermarkWork(directory, values))
        return works

    def checkpoint_all(self, directory: LogDirectory) -> None:
        """Write every checkpoint of a directory anew, so that none speaks of logs that are gone."""
        logs = self._logs_in(directory.path)
        dirty = {each.partition: each.first_dirty_offset for each in logs if each.first_dirty_offset > 0}
        self.checkpoint_recovery_points_of(directory)
        self.checkpoint_log_starts(directory)
        directory.high_watermark_rounds += 1
        self._checkpoint(directory, HIGH_WATERMARKS, {each.partition: each.high_watermark for each in logs})
        self._checkpoint(directory, CLEANER_OFFSETS, dirty)
        directory.forgotten = set()

    def checkpoint_recovery_points(self) -> None:
        """Note what is known to be synced, and where logs begin; all, where logs have gone."""
        for _, directory in self._live():
            if directory.forgotten:
                self.checkpoint_all(directory)
            else:
                self.checkpoint_recovery_points_of(directory)
                self.checkpoint_log_starts(directory)

    def checkpoint_recovery_points_of(self, directory: LogDirectory) -> None:
        """Note what is known to be synced in one directory, of copies too: it vouches for their holes."""
        logs = [*self._futures_in(directory.path), *self._logs_in(directory.path)]
        points = {each.partition: each.recovery_point for each in logs}
        self._checkpoint(directory, RECOVERY_POINTS, points)
        directory.recovery_points = points

    def checkpoint_log_starts(self, directory: LogDirectory) -> None:
        """Note where logs begin that begin inside a segment."""
        starts = {
            each.partition: each.log_start_offset
            for each in self._logs_in(directory.path)
            if each.log_start_offset > each.segments[0].base_offset
        }
        self._checkpoint(directory, LOG_START_OFFSETS, starts)
        directory.log_starts = starts

    def _checkpoint(self, directory: LogDirectory, name: str, values: Mapping[TopicPartition, int]) -> None:
        try:
            write_offsets(self._disk, directory.path, name, values)
        except OSError as error:
            directory.fail(error)
