"""Open a log directory: read its checkpoints, open every log and future log, find logs to be deleted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.storage.disk.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    IN_USE,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offsets,
)
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.file_names import DELETE_SUFFIX, future_partition_of, partition_of
from ottla.storage.log.log import Log
from ottla.storage.log.recovery import open_log


class CannotStart(Exception):
    """The log directories belong to another broker, are in use, or contradict each other."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What a directory's checkpoints and marks say."""

    was_clean: bool
    """It was closed cleanly: nothing needs to be recovered."""
    was_ours: bool
    """Ottla wrote here: a gap between segments above the recovery point is a loss."""
    recovery_points: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    first_dirty: Mapping[TopicPartition, int]

    def partitions(self) -> set[TopicPartition]:
        """Every partition that has a row in a checkpoint."""
        return {*self.recovery_points, *self.log_starts, *self.high_watermarks, *self.first_dirty}


@dataclass(slots=True)
class DirectoryContent:
    """The logs in a directory."""

    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    futures: list[Log] = field(default_factory=list)
    left_over: dict[str, TopicPartition | None] = field(default_factory=dict)
    """The paths of logs that were to be deleted."""


def open_directory(
    directory: LogDirectory,
    default: LogConfig,
    by_topic: Mapping[str, LogConfig],
    elsewhere: Mapping[TopicPartition, Log],
    now_ms: int,
) -> DirectoryContent:
    """Open every log; only what was not synced before a crash is scanned. Raises ``OSError``."""
    noted = _take_notes(directory)
    found = DirectoryContent()
    for entry in directory.disk.list_directory(directory.path):
        name = entry.name
        if not entry.is_directory:
            continue
        if name.endswith(DELETE_SUFFIX):
            found.left_over[f"{directory.path}/{name}"] = partition_of(name.rpartition(".")[0])
        elif (partition := future_partition_of(name)) is not None:
            config = by_topic.get(partition.topic, default)
            found.futures.append(_open_future(directory, partition, name, noted, config, now_ms))
        elif (partition := partition_of(name)) is not None:
            if partition in elsewhere:
                raise CannotStart(
                    f"{partition} lies in {directory.path} and in {elsewhere[partition].directory}: "
                    "remove the one that is older"
                )
            config = by_topic.get(partition.topic, default)
            found.logs[partition] = _open_noted(directory, partition, noted, config, now_ms)
    directory.forgotten.update(noted.partitions() - found.logs.keys())
    return found


def _take_notes(directory: LogDirectory) -> Noted:
    """Read the checkpoints and marks, and mark the directory as in use."""
    disk, path = directory.disk, directory.path
    noted = Noted(
        was_clean=disk.exists(f"{path}/{CLEAN_SHUTDOWN}"),
        was_ours=disk.exists(f"{path}/{IN_USE}"),
        recovery_points=read_offsets(disk, path, RECOVERY_POINTS),
        log_starts=read_offsets(disk, path, LOG_START_OFFSETS),
        high_watermarks=read_offsets(disk, path, HIGH_WATERMARKS),
        first_dirty=read_offsets(disk, path, CLEANER_OFFSETS),
    )
    directory.recovery_points = dict(noted.recovery_points)
    directory.log_starts = dict(noted.log_starts)
    disk.write_file(f"{path}/{IN_USE}", b"")
    if noted.was_clean:
        disk.remove(f"{path}/{CLEAN_SHUTDOWN}")
    disk.sync_directory(path)
    return noted


def _open_noted(
    directory: LogDirectory, partition: TopicPartition, noted: Noted, config: LogConfig, now_ms: int
) -> Log:
    return open_log(
        directory,
        partition,
        config,
        was_clean=noted.was_clean,
        recovery_point=noted.recovery_points.get(partition, 0),
        log_start_offset=noted.log_starts.get(partition, 0),
        high_watermark=noted.high_watermarks.get(partition, 0),
        first_dirty_offset=noted.first_dirty.get(partition, 0),
        gaps_are_losses=noted.was_ours,
        now_ms=now_ms,
    )


def _open_future(
    directory: LogDirectory,
    partition: TopicPartition,
    name: str,
    noted: Noted,
    config: LogConfig,
    now_ms: int,
) -> Log:
    """Of a future log only the recovery point is in a checkpoint: nobody reads it yet."""
    return open_log(
        directory,
        partition,
        config,
        name=name,
        was_clean=noted.was_clean,
        recovery_point=noted.recovery_points.get(partition, 0),
        gaps_are_losses=noted.was_ours,
        now_ms=now_ms,
    )
