"""Future logs: copies of logs on their way to another log directory, ``<partition>.<token>-future``.

Whoever owns the log fills the copy. When it is complete it is synced, the old log's directory is renamed to
be deleted, and the copy's directory gets the partition's name. After a crash between the two the copy is the
only log left; the next start gives it the name.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress

from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.storage.directories.deleted_logs import rename_to_delete
from ottla.storage.directories.future_copy import create_future, take_over
from ottla.storage.directories.log_checkpoints import LogCheckpoints
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.log.log import Log

log = logging.getLogger(__name__)


class FutureLogs:
    """The future logs of a broker, at most one for each of its logs."""

    def __init__(
        self,
        directories: Mapping[str, LogDirectory],
        logs: dict[TopicPartition, Log],
        futures: dict[TopicPartition, Log],
        checkpoints: LogCheckpoints,
    ) -> None:
        self._directories = directories
        self._logs = logs
        self._futures = futures
        self._checkpoints = checkpoints

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._futures.values()))

    def get(self, partition: TopicPartition) -> Log | None:
        return self._futures.get(partition)

    def add(self, future: Log) -> None:
        """Take over a future log that was found at the start."""
        self._futures[future.partition] = future

    def begin(self, partition: TopicPartition, path: str, *, token: str, now_ms: int) -> Log:
        """An empty copy of a log in another directory; an earlier copy is dropped.

        The log is not compacted until the copy has taken over or is dropped.
        """
        self.drop(partition, token=token)
        self._logs[partition].home.cancel_cleaning()
        directory = self._directories[path]
        directory.check_online()
        if partition in directory.forgotten:
            self._checkpoints.write_all(directory)
        try:
            future = create_future(self._logs[partition], directory, token=token, now_ms=now_ms)
        except OSError as error:
            directory.fail(error)
        self._futures[partition] = future
        return future

    def drop(self, partition: TopicPartition, *, token: str) -> None:
        """Delete the copy of a log, if there is one."""
        future = self._futures.pop(partition, None)
        if future is not None and future.home.directory.failure is None:
            rename_to_delete(future, f"{token[:-1]}f")

    def take_offline(self, path: str) -> None:
        """Forget the copies in a directory that failed."""
        for future in [each for each in self._futures.values() if each.directory == path]:
            del self._futures[future.partition]

    # -- take over ---------------------------------------------------------------------------------

    def swap(self, partition: TopicPartition, *, token: str) -> Log:
        """The complete copy becomes the log; the old log's directory is removed later.

        Raises ``LogDirectoryFailed``; if it is the copy's directory that failed, the log stays as it was.
        """
        current, future = self._logs[partition], self._futures.get(partition)
        assert future is not None, "there is a copy"
        if future.recovery_point < current.recovery_point:
            future.flush()
        take_over(current, future)
        self._vouch_for(future)
        path = current.path
        rename_to_delete(current, token)
        try:
            self._give_name(future)
        except LogDirectoryFailed:
            _bring_back(current, path)
            raise
        return future

    def promote_orphans(self, renamed: set[TopicPartition | None]) -> None:
        """Finish swaps that a crash cut short: the log is renamed to be deleted, the copy has no name yet."""
        for future in self:
            if future.partition not in self._logs and future.partition in renamed:
                try:
                    self._vouch_for(future)
                    self._give_name(future)
                except LogDirectoryFailed as failed:
                    log.error("log directory offline directory=%s reason=%s", failed.directory, failed.reason)

    def _vouch_for(self, future: Log) -> None:
        """Before the copy is the only log: let no restart take its gaps for losses.

        It still counts as a future log, so that no checkpoint lowers its recovery point meanwhile.
        """
        directory = future.home.directory
        if future.partition in directory.forgotten:
            self._checkpoints.write_all(directory)
        try:
            directory.raise_recovery_point(future.partition, future.recovery_point)
        except OSError as error:
            directory.fail(error)

    def _give_name(self, future: Log) -> None:
        directory, before = future.home.directory, future.path
        path = f"{directory.path}/{future.partition}"
        try:
            future.release()
            directory.disk.rename(before, path)
            future.home.path = path
            directory.disk.sync_directory(directory.path)
        except OSError as error:
            if future.path == path:
                with suppress(OSError):  # or the next start would find two logs of that name
                    directory.disk.rename(path, before)
            directory.fail(error)
        future.note_created()
        self._logs[future.partition] = future
        del self._futures[future.partition]


def _bring_back(current: Log, path: str) -> None:
    """The copy did not get its name: give the log its own back."""
    directory = current.home.directory
    directory.keep(current.path)
    try:
        directory.disk.rename(current.path, path)
        current.home.path = path
        directory.disk.sync_directory(directory.path)
    except OSError as error:
        directory.fail(error)
    directory.forgotten.discard(current.partition)
    directory.rolled.add(current.partition)
