"""The checkpoints of log directories: offsets of the logs in them, written for the next start."""

from collections.abc import Iterable, Mapping

from ottla.model.ids import TopicPartition
from ottla.storage.directories.high_watermark_work import HighWatermarkWork
from ottla.storage.disk.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    write_offsets,
)
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.log.log import Log


class LogCheckpoints:
    """Writes the checkpoints of all log directories; each method raises ``LogDirectoryFailed``."""

    def __init__(
        self,
        directories: Mapping[str, LogDirectory],
        logs: Mapping[TopicPartition, Log],
        futures: Mapping[TopicPartition, Log],
    ) -> None:
        self._directories = directories
        self._logs = logs
        self._futures = futures

    def _live(self) -> Iterable[LogDirectory]:
        return [each for each in self._directories.values() if each.failure is None]

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [each for each in self._logs.values() if each.directory == directory.path]

    # -- of every directory ------------------------------------------------------------------------

    def write_high_watermarks(self) -> None:
        """Write every log's high watermark."""
        for work in self.high_watermark_work():
            work()
            work.put_in_place()

    def high_watermark_work(self) -> list[HighWatermarkWork]:
        """The same, to be done by a worker and then put in place; leaves out a directory whose last work is
        not done."""
        return [
            HighWatermarkWork(each, self._high_watermarks(each))
            for each in self._live()
            if not each.is_checkpointing
        ]

    def write_recovery_points(self) -> None:
        """Write recovery points and log starts; every checkpoint where logs are gone."""
        for directory in self._live():
            if directory.forgotten:
                self.write_all(directory)
            else:
                self.write_recovery_points_of(directory)
                self.write_log_starts_of(directory)

    # -- of one directory --------------------------------------------------------------------------

    def write_all(self, directory: LogDirectory) -> None:
        """Write every checkpoint of a directory, so that none has a row of a log that is gone."""
        self.write_recovery_points_of(directory)
        self.write_log_starts_of(directory)
        directory.high_watermark_rounds += 1
        self._write(directory, HIGH_WATERMARKS, self._high_watermarks(directory))
        self.write_cleaner_offsets_of(directory)
        directory.forgotten = set()

    def _high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        return {each.partition: each.high_watermark for each in self._logs_in(directory)}

    def write_recovery_points_of(self, directory: LogDirectory) -> None:
        """Of future logs too: the recovery point vouches for their gaps."""
        futures = [each for each in self._futures.values() if each.directory == directory.path]
        points = {each.partition: each.recovery_point for each in [*futures, *self._logs_in(directory)]}
        self._write(directory, RECOVERY_POINTS, points)
        directory.recovery_points = points

    def write_log_starts_of(self, directory: LogDirectory) -> None:
        """Of the logs that start inside a segment."""
        starts = {
            each.partition: each.log_start_offset
            for each in self._logs_in(directory)
            if each.log_start_offset > each.segments[0].base_offset
        }
        self._write(directory, LOG_START_OFFSETS, starts)
        directory.log_starts = starts

    def write_cleaner_offsets_of(self, directory: LogDirectory) -> None:
        """Where the next compaction of each log begins."""
        logs = self._logs_in(directory)
        dirty = {each.partition: each.first_dirty_offset for each in logs if each.first_dirty_offset > 0}
        self._write(directory, CLEANER_OFFSETS, dirty)

    @staticmethod
    def _write(directory: LogDirectory, name: str, values: Mapping[TopicPartition, int]) -> None:
        try:
            write_offsets(directory.disk, directory.path, name, values)
        except OSError as error:
            directory.fail(error)
