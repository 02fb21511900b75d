"""Replicas on their way to another log directory of this broker: copied a portion at a time, then swapped.

Only what is committed is copied until the copy is nearly complete: that is hardly ever cut off again. Where
the log is cut all the same, by an unclean election, so is the copy. The copy is synced by a thread before it
takes over, so that nothing that was safe before is less safe afterwards.
"""

import logging
from typing import TYPE_CHECKING

from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.records.batch import CorruptRecords
from ottla.storage.future_logs import common_end, copy_portion
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.partition import Partition

log = logging.getLogger(__name__)

PORTION_BYTES = 1024 * 1024
"""How much is copied before others get their turn."""
LAST_BYTES_MAX = 4 * 1024 * 1024
"""How much may still be copied in the turn of the swap."""
WAIT_MS = 50
"""A copy that has all there is to copy looks again after so long."""


class Move:
    """One replica's way: its copy, and whether that is synced."""

    __slots__ = ("future", "is_flushed", "is_flushing")

    def __init__(self, future: Log) -> None:
        self.future = future
        self.is_flushed = False
        self.is_flushing = False


class ReplicaMover:
    """All moves of this broker; one portion of one replica a turn."""

    __slots__ = ("_is_running", "_moves", "_node")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._moves: dict[TopicPartition, Move] = {}
        self._is_running = False

    def begin(self, partition: "Partition", path: str) -> None:
        """Let a hosted replica lie in that directory. Raises ``LogDirectoryFailed``."""
        log_dirs, name = self._node.log_dirs, partition.name
        future = log_dirs.futures.get(name)
        if partition.log.directory == path:
            self.cancel(name)
            return
        if future is None or future.directory != path:
            token, now_ms = self._token(), self._node.clock.wall_ms()
            future = log_dirs.begin_future(name, path, token=token, now_ms=now_ms)
            log.info("replica moves partition=%s from=%s to=%s", name, partition.log.directory, path)
            partition.log.take_lowest_cut()  # the copy is empty yet
            self._moves[name] = Move(future)
            self._go_on_soon(0)
        else:
            self.resume(partition)

    def resume(self, partition: "Partition") -> None:
        """The replica is hosted: a copy that was begun before is completed, as far as it is true."""
        future = self._node.log_dirs.futures.get(partition.name)
        if future is not None and partition.name not in self._moves:
            log.info("replica moves on partition=%s to=%s", partition.name, future.directory)
            # What the log lost in a crash, or by a cut, the copy may still have.
            partition.log.take_lowest_cut()
            future.truncate_to(min(common_end(partition.log, future), partition.log.high_watermark))
            self._moves[partition.name] = Move(future)
            self._go_on_soon(0)

    def cancel(self, name: TopicPartition) -> None:
        """The replica stays where it is."""
        self._moves.pop(name, None)
        self._node.log_dirs.drop_future(name, token=self._token())

    def stop(self) -> None:
        """The broker leaves; copies go on in its next life."""
        self._moves = {}

    def _token(self) -> str:
        return f"{self._node.random.getrandbits(128):032x}"

    def _go_on_soon(self, delay_ms: int) -> None:
        if not self._is_running:
            self._is_running = True
            self._node.timers.after(delay_ms, self._go_on)

    def _go_on(self) -> None:
        self._is_running = False
        copied = 0
        if self._node.partitions.throttles.copying_holds_back():
            self._go_on_soon(WAIT_MS)
            return
        for name, move in list(self._moves.items()):
            partition = self._node.partitions.find(*name)
            if partition is None or self._node.log_dirs.futures.get(name) is not move.future:
                self._moves.pop(name, None)
                continue
            try:
                copied = self._step(partition, move)
            except LogDirectoryFailed as failed:
                self._moves.pop(name, None)
                partition.host.directory_failed(failed)
            except CorruptRecords as corrupt:
                log.error("replica stays, it cannot be copied partition=%s reason=%s", name, corrupt)
                self.cancel(name)
            if copied:
                self._node.partitions.throttles.copied(copied)
                # The others first, next time.
                if name in self._moves:
                    self._moves[name] = self._moves.pop(name)
                break
        if self._moves:
            self._go_on_soon(0 if copied else WAIT_MS)

    def _step(self, partition: "Partition", move: Move) -> int:
        """Copy a portion of what is committed; if there is none left, sync, then swap. How many bytes."""
        current, future = partition.log, move.future
        cut = current.take_lowest_cut()
        if cut < future.end_offset:
            future.truncate_to(cut)
            move.is_flushed = False
        now_ms = self._node.clock.wall_ms()
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
            """If its directory failed over it, the copy is gone, and the move with it."""
            move.is_flushing = False
            move.is_flushed = True
            move.future.flushed(work)

        self._node.partitions.background.in_thread(work, flushed)

    def _swap(self, partition: "Partition", move: Move) -> None:
        """Copy the rest, committed or not, and let the copy take over, all in one turn."""
        current, future, now_ms = partition.log, move.future, self._node.clock.wall_ms()
        left = LAST_BYTES_MAX
        while left > 0 and (copied := copy_portion(current, future, left, current.end_offset, now_ms)):
            left -= copied
        if future.end_offset != current.end_offset:
            future.truncate_to(current.high_watermark)
            return
        del self._moves[partition.name]
        old = current.directory
        partition.take_log(self._node.log_dirs.swap(partition.name, token=self._token()))
        log.info("replica moved partition=%s from=%s to=%s", partition.name, old, future.directory)
