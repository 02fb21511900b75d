"""Moves replicas to another log directory of this broker: copies them a slice at a time, then swaps.

Only committed records are copied until the copy is nearly complete: they are hardly ever truncated. Where
the log is cut all the same, by an unclean election, so is the copy. The copy is synced by a thread before it
takes over, so that nothing that was safe before is less safe afterwards.
"""

import logging

from ottla.broker.replicas.hosted import Partitions
from ottla.broker.replicas.housekeeping import Housekeeping
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Pause, Steps
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.records.batch import CorruptRecords
from ottla.storage.directories.future_copy import common_end, copy_portion
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log

log = logging.getLogger(__name__)

PORTION_BYTES = 1024 * 1024
"""How much is copied before others get their turn."""
LAST_BYTES_MAX = 4 * 1024 * 1024
"""How much may still be copied in the turn of the swap."""
WAIT_MS = 50
"""A copy that has all there is to copy looks again after so long."""


class Move:
    """One move: the copy, and whether it is synced."""

    __slots__ = ("future", "is_flushed", "is_flushing")

    def __init__(self, future: Log) -> None:
        self.future = future
        self.is_flushed = False
        self.is_flushing = False


class DirectoryMoves:
    """All moves of this broker; each turn copies a slice of one replica."""

    def __init__(
        self,
        runtime: Runtime,
        log_dirs: LogDirs,
        partitions: Partitions,
        throttles: Throttles,
        housekeeping: Housekeeping,
    ) -> None:
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._throttles = throttles
        self._housekeeping = housekeeping
        self._moves: dict[TopicPartition, Move] = {}
        self._is_running = False
        self.wishes: dict[TopicPartition, str] = {}
        """Where replicas that are not here yet shall be made."""

    def take_wish(self, name: TopicPartition) -> str | None:
        """The directory in which to create a new replica, if one was named and is not offline."""
        wished = self.wishes.pop(name, None)
        return wished if wished in self._log_dirs.live_paths else None

    def begin(self, partition: Partition, path: str) -> None:
        """Move a hosted replica to that directory. Raises ``LogDirectoryFailed``."""
        log_dirs, name = self._log_dirs, partition.name
        future = log_dirs.futures.get(name)
        if partition.log.directory == path:
            self.cancel(name)
            return
        if future is None or future.directory != path:
            token, now_ms = self._token(), self._runtime.clock.wall_ms()
            future = log_dirs.futures.begin(name, path, token=token, now_ms=now_ms)
            log.info("replica moves partition=%s from=%s to=%s", name, partition.log.directory, path)
            partition.log.take_lowest_cut()  # the copy is empty yet
            self._moves[name] = Move(future)
            self._start()
        else:
            self.resume(partition)

    def resume(self, partition: Partition) -> None:
        """The replica is hosted: complete a copy that was begun earlier, as far as it agrees."""
        future = self._log_dirs.futures.get(partition.name)
        if future is not None and partition.name not in self._moves:
            log.info("replica moves on partition=%s to=%s", partition.name, future.directory)
            # What the log lost in a crash, or by a cut, the copy may still have.
            partition.log.take_lowest_cut()
            future.truncate_to(min(common_end(partition.log, future), partition.log.high_watermark))
            self._moves[partition.name] = Move(future)
            self._start()

    def cancel(self, name: TopicPartition) -> None:
        """The replica stays where it is."""
        self._moves.pop(name, None)
        self._log_dirs.futures.drop(name, token=self._token())

    def stop(self) -> None:
        """The broker stops; copying goes on after its restart."""
        self._moves = {}

    def _token(self) -> str:
        return f"{self._runtime.random.getrandbits(128):032x}"

    def _start(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._runtime.own.spawn(self._run())

    def _run(self) -> Steps[None]:
        try:
            yield Pause(0)
            while self._moves:
                copied = 0 if self._throttles.copying_holds_back() else self._copy_portion()
                yield Pause(0 if copied else WAIT_MS)
        finally:
            self._is_running = False

    def _copy_portion(self) -> int:
        """Copy a slice of the first replica that has something to copy; returns the number of bytes."""
        for name, move in list(self._moves.items()):
            partition = self._partitions.find(*name)
            if partition is None or self._log_dirs.futures.get(name) is not move.future:
                self._moves.pop(name, None)
                continue
            try:
                copied = self._step(partition, move)
            except LogDirectoryFailed as failed:
                self._moves.pop(name, None)
                self._partitions.directory_failed(failed)
            except CorruptRecords as corrupt:
                log.error("replica stays, it cannot be copied partition=%s reason=%s", name, corrupt)
                self.cancel(name)
            else:
                if copied:
                    self._throttles.copied(copied)
                    self._moves[name] = self._moves.pop(name)  # the others first, next time
                    return copied
        return 0

    def _step(self, partition: Partition, move: Move) -> int:
        """Copy a slice of what is committed; when none is left, sync, then swap. Returns the bytes copied."""
        current, future = partition.log, move.future
        cut = current.take_lowest_cut()
        if cut < future.end_offset:
            future.truncate_to(cut)
            move.is_flushed = False
        now_ms = self._runtime.clock.wall_ms()
        copied = copy_portion(current, future, PORTION_BYTES, current.high_watermark, now_ms)
        if copied or move.is_flushing:
            return copied
        if not move.is_flushed:
            self._flush(move)
        else:
            self._swap(partition, move)
        return 0

    def _flush(self, move: Move) -> None:
        work = move.future.flush_work()
        if work is None:
            move.is_flushed = True
            return
        move.is_flushing = True

        def flushed(_: object) -> None:
            """If its directory failed meanwhile, the copy is lost, and the move ends."""
            move.is_flushing = False
            move.is_flushed = True
            move.future.flushed(work)

        self._housekeeping.in_thread(work, flushed)

    def _swap(self, partition: Partition, move: Move) -> None:
        """Copy the rest, committed or not, and let the copy take over, all in one turn."""
        current, future, now_ms = partition.log, move.future, self._runtime.clock.wall_ms()
        left = LAST_BYTES_MAX
        while left > 0 and (copied := copy_portion(current, future, left, current.end_offset, now_ms)):
            left -= copied
        if future.end_offset != current.end_offset:
            future.truncate_to(current.high_watermark)
            return
        del self._moves[partition.name]
        old = current.directory
        partition.take_log(self._log_dirs.futures.swap(partition.name, token=self._token()))
        log.info("replica moved partition=%s from=%s to=%s", partition.name, old, future.directory)
