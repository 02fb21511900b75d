"""All logs of a broker, over its log directories: open, create, find, delete, close."""

import logging
from collections.abc import Iterable, Mapping

from ottla.config.log import NEVER_MS, LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import CorruptRecords
from ottla.storage.directories.deleted_logs import rename_to_delete
from ottla.storage.directories.future_logs import FutureLogs
from ottla.storage.directories.log_checkpoints import LogCheckpoints
from ottla.storage.directories.opening import CannotStart, DirectoryContent, open_directory
from ottla.storage.disk.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEAN_SHUTDOWN_CONTENT,
    IN_USE,
    LOCK,
    META_PROPERTIES,
    CorruptCheckpoint,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.file_names import DELETE_SUFFIX
from ottla.storage.disk.open_files import OPEN_FILES_MAX, OpenFiles
from ottla.storage.disk.port import Disk, Lock, replace_file
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import FlushWork
from ottla.storage.log.recovery import create_log

log = logging.getLogger(__name__)

SYNCED_ONE_BY_ONE_MAX = 20


class LogDirs:
    """Every log of this broker. A directory that fails goes offline; the others go on."""

    def __init__(self, disk: Disk, paths: Iterable[str], *, open_files_max: int = OPEN_FILES_MAX) -> None:
        open_files = OpenFiles(open_files_max)
        futures: dict[TopicPartition, Log] = {}
        self._disk = disk
        self.directories = {path: LogDirectory(disk, path, open_files) for path in paths}
        self.logs: dict[TopicPartition, Log] = {}
        self.checkpoints = LogCheckpoints(self.directories, self.logs, futures)
        self.futures = FutureLogs(self.directories, self.logs, futures, self.checkpoints)
        self._left_over: dict[str, tuple[LogDirectory, TopicPartition | None]] = {}
        """Logs that were to be deleted when the broker stopped, by path."""
        self._locks: dict[str, Lock] = {}

    def _live(self) -> list[tuple[str, LogDirectory]]:
        return [(path, each) for path, each in self.directories.items() if each.failure is None]

    # -- start -------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Lock the directories against other processes; creates missing ones."""
        for path, directory in self.directories.items():
            try:
                self._disk.make_directory(path)
                lock = self._disk.lock(f"{path}/{LOCK}")
            except OSError as error:
                self._note_failure(directory, error)
                continue
            if lock is None:
                raise CannotStart(f"another process uses the log directory {path}")
            self._locks[path] = lock

    def stored_meta(self) -> MetaProperties | None:
        """The owner named in the directories, the same in all; ``None`` if all are new."""
        found: MetaProperties | None = None
        for path, directory in self._live():
            try:
                meta = decode_meta_properties(self._disk.read_file(f"{path}/{META_PROPERTIES}"))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._note_failure(directory, error)
                continue
            except CorruptCheckpoint as error:
                raise CannotStart(f"{path}/{META_PROPERTIES} cannot be read: {error}") from None
            if meta.version != 0:
                raise CannotStart(f"{path}/{META_PROPERTIES} has version {meta.version}, not 0")
            if found is not None and meta != found:
                raise CannotStart(f"{path} belongs to {meta}, another log directory to {found}")
            found = meta
        return found

    def claim(self, broker_id: int, cluster_id: str, date_text: str) -> None:
        """Check that the directories belong to this broker, and mark new ones."""
        mine = MetaProperties(broker_id, cluster_id)
        stored = self.stored_meta()
        if stored is not None and stored.broker_id not in (None, broker_id):
            raise CannotStart(f"the log directories belong to broker {stored.broker_id}, not {broker_id}")
        if stored is not None and stored.cluster_id not in (None, cluster_id):
            raise CannotStart(f"the log directories belong to cluster {stored.cluster_id}, not {cluster_id}")
        for path, directory in self._live():
            target = f"{path}/{META_PROPERTIES}"
            try:
                if stored != mine or not self._disk.exists(target):
                    replace_file(self._disk, target, encode_meta_properties(mine, date_text))
            except OSError as error:
                self._note_failure(directory, error)

    def open(self, default: LogConfig, by_topic: Mapping[str, LogConfig], now_ms: int) -> None:
        """Open every log of every directory; scans only what was not synced before a crash."""
        for _, directory in self._live():
            try:
                self._take(directory, open_directory(directory, default, by_topic, self.logs, now_ms))
            except OSError as error:
                self._note_failure(directory, error)
            except CorruptRecords as error:
                self._note_failure(directory, OSError(f"a log is corrupt: {error}"))
            except LogDirectoryFailed as failed:
                log.error("log directory offline directory=%s reason=%s", failed.directory, failed.reason)
        if not self.offline:
            self.futures.promote_orphans({partition for _, partition in self._left_over.values()})
        self._discard_left_overs(default.file_delete_delay_ms)

    def _take(self, directory: LogDirectory, found: DirectoryContent) -> None:
        self.logs.update(found.logs)
        for future in found.futures:
            self.futures.add(future)
        self._left_over |= {path: (directory, partition) for path, partition in found.left_over.items()}

    def _discard_left_overs(self, delay_ms: int) -> None:
        """Delete left-over logs, except one whose copy may be in a directory that is offline."""
        for path, (directory, partition) in self._left_over.items():
            if partition in self.logs or not self.offline:
                directory.discard(path, delay_ms)

    # -- logs --------------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> Log | None:
        return self.logs.get(partition)

    def create(
        self,
        partition: TopicPartition,
        config: LogConfig,
        *,
        topic_id: TopicId | None = None,
        now_ms: int,
        directory: str | None = None,
    ) -> Log:
        """The partition's log; creates a missing one in the named directory, or in the emptiest."""
        found = self.logs.get(partition)
        if found is not None:
            return found
        chosen = self.directories[directory] if directory is not None else self._emptiest()
        chosen.check_online()
        if partition in chosen.forgotten:
            self.checkpoints.write_all(chosen)
        try:
            created = create_log(chosen, partition, config, topic_id=topic_id, now_ms=now_ms)
        except OSError as error:
            chosen.fail(error)
        self.logs[partition] = created
        return created

    def _emptiest(self) -> LogDirectory:
        counts = {path: 0 for path, _ in self._live()}
        if not counts:
            first = next(iter(self.directories.values()))
            raise LogDirectoryFailed(first.path, "no log directory is online")
        if len(counts) == 1:
            return self.directories[next(iter(counts))]
        for each in self.logs.values():
            if each.directory in counts:
                counts[each.directory] += 1
        return self.directories[min(counts, key=lambda path: counts[path])]

    def delete(self, partition: TopicPartition, *, token: str) -> None:
        """Take a log out of service; its directory is renamed now and removed later.

        ``token``: 32 hexadecimal digits that make the new name unique.
        """
        self.futures.drop(partition, token=token)
        gone = self.logs.pop(partition, None)
        if gone is not None:
            rename_to_delete(gone, token)

    # -- directories -------------------------------------------------------------------------------

    @property
    def live_paths(self) -> list[str]:
        return [path for path, _ in self._live()]

    @property
    def offline(self) -> dict[str, str]:
        """Failed directories and why."""
        return {path: each.failure for path, each in self.directories.items() if each.failure is not None}

    def take_offline(self, path: str, reason: str) -> list[TopicPartition]:
        """Stop using a directory; returns the partitions that went with it."""
        directory = self.directories[path]
        if directory.failure is None:
            directory.failure = reason
        self.futures.take_offline(path)
        gone = [partition for partition, each in self.logs.items() if each.directory == path]
        for partition in gone:
            self.logs.pop(partition).home.cancel_cleaning()
        return gone

    def _note_failure(self, directory: LogDirectory, error: OSError) -> None:
        directory.failure = str(error)
        log.error("log directory offline directory=%s reason=%s", directory.path, error)

    # -- housekeeping ------------------------------------------------------------------------------

    def flushes_due(self, now_ms: int) -> list[tuple[Log, FlushWork]]:
        """Finished segments, and logs past ``flush.ms``: do each work off the loop, then ``Log.flushed``."""
        due = dict.fromkeys(log for _, each in self._live() for log in self._rolled_in(each))
        due |= {
            each: None
            for each in self.logs.values()
            if each.config.flush_ms != NEVER_MS and each.is_flush_due(now_ms)
        }
        works = [(each, each.flush_work()) for each in due]
        return [(each, work) for each, work in works if work is not None]

    def _rolled_in(self, directory: LogDirectory) -> list[Log]:
        """Logs with finished segments in a directory; a copy is synced when it is complete."""
        rolled = [self.logs.get(partition) for partition in sorted(directory.rolled)]
        return [each for each in rolled if each is not None and each.home.directory is directory]

    def remove_garbage(self, now_ms: int) -> None:
        """Remove deleted files and directories whose delay is over."""
        for _, directory in self._live():
            try:
                for path in directory.take_garbage(now_ms):
                    self._remove(path)
            except OSError as error:
                directory.fail(error)

    def _remove(self, path: str) -> None:
        try:
            if path.endswith(DELETE_SUFFIX):
                self._disk.remove_tree(path)
            else:
                self._disk.remove(path)
        except FileNotFoundError:
            return

    # -- stop --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop cleanly: everything synced, checkpointed and marked, so that the next start scans nothing."""
        for path, directory in self._live():
            try:
                self._close_logs(directory)
            except LogDirectoryFailed as failed:
                log.error("log directory offline directory=%s reason=%s", failed.directory, failed.reason)
                self.take_offline(path, failed.reason)
                continue
            self._mark_clean(directory)
        for lock in self._locks.values():
            lock.release()
        self._locks = {}

    def _close_logs(self, directory: LogDirectory) -> None:
        """Many logs are synced in one go: file by file thousands of them would take minutes."""
        logs = [each for each in [*self.logs.values(), *self.futures] if each.home.directory is directory]
        if len(logs) <= SYNCED_ONE_BY_ONE_MAX:
            for each in logs:
                each.close()
            return
        works = [(each, each.closing_work()) for each in logs]
        try:
            self._disk.sync_volume(directory.path)
        except OSError as error:
            directory.fail(error)
        for each, work in works:
            each.closed(work)

    def _mark_clean(self, directory: LogDirectory) -> None:
        try:
            self.checkpoints.write_all(directory)
            replace_file(self._disk, f"{directory.path}/{CLEAN_SHUTDOWN}", CLEAN_SHUTDOWN_CONTENT)
            self._disk.remove(f"{directory.path}/{IN_USE}")
        except OSError as error:
            self._note_failure(directory, error)
        except LogDirectoryFailed as failed:
            log.error("log directory offline directory=%s reason=%s", failed.directory, failed.reason)
