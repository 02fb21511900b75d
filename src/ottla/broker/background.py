"""What a broker does with its logs from time to time: lag, checkpoints, syncing, retention, cleaning.

The disk's slow answers (fsync above all) are waited for in a thread. What such work needs is taken from the
logs beforehand, in the loop: a log is only ever touched by one thread.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.timers import Timer
from ottla.model.errors import LogDirectoryFailed
from ottla.storage.checkpoints import HIGH_WATERMARKS, write_offsets
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

GARBAGE_INTERVAL_MS = 15_000
SYNC_ROLLED_INTERVAL_MS = 5_000


class Background:
    """The broker's housekeeping, one task at a time per kind."""

    __slots__ = ("_at_work", "_is_stopped", "_node", "_timers", "_when_quiet")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._timers: dict[str, Timer] = {}
        self._is_stopped = False
        self._at_work = 0
        self._when_quiet: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin; intervals are read anew each time, so that a changed setting counts."""
        logs = self._node.config.log_management
        self._every(
            "lag", lambda: self._node.config.replication.replica_lag_time_max_ms // 2, self._check_lag
        )
        self._every(
            "high watermarks",
            lambda: self._node.config.replication.replica_high_watermark_checkpoint_interval_ms,
            self._checkpoint_high_watermarks,
        )
        self._every(
            "recovery points",
            lambda: logs.log_flush_offset_checkpoint_interval_ms,
            self._checkpoint_recovery_points,
        )
        self._every("garbage", lambda: GARBAGE_INTERVAL_MS, self._remove_garbage)
        self._every("rolled segments", lambda: SYNC_ROLLED_INTERVAL_MS, self._sync_rolled)

    def stop(self) -> None:
        """Begin nothing new."""
        self._is_stopped = True
        for timer in self._timers.values():
            timer.cancel()

    def when_quiet(self, then: Callable[[], None]) -> None:
        """Call this once no thread works on the log directories any more."""
        if self._at_work:
            self._when_quiet.append(then)
        else:
            then()

    # --- scheduling -------------------------------------------------------------------------------------

    def _every(self, name: str, interval_ms: Callable[[], int], task: Callable[[], None]) -> None:
        def run() -> None:
            if self._is_stopped:
                return
            self._guarded(task)
            self._timers[name] = self._node.timers.after(max(1, interval_ms()), run)

        self._timers[name] = self._node.timers.after(max(1, interval_ms()), run)

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except LogDirectoryFailed as failed:
            self._node.partitions.directory_failed(failed)

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Do this off the loop; a failing directory goes offline, ``then`` hears of success alone."""
        self._at_work += 1

        def done(outcome: Any) -> None:
            self._at_work -= 1
            if isinstance(outcome, LogDirectoryFailed):
                self._node.partitions.directory_failed(outcome)
            elif isinstance(outcome, Exception):
                raise outcome
            elif then is not None:
                then(outcome)
            if not self._at_work:
                waiting, self._when_quiet = self._when_quiet, []
                for each in waiting:
                    each()

        self._node.run_in_thread(work, done)

    # --- tasks ------------------------------------------------------------------------------------------

    def _check_lag(self) -> None:
        now_ms = self._node.clock.monotonic_ms()
        for partition in self._node.partitions.all():
            partition.check_lag(now_ms)

    def _checkpoint_high_watermarks(self) -> None:
        """One file a directory: the numbers of this moment, written in a thread."""
        by_directory: dict[str, dict[Any, int]] = {path: {} for path in self._node.log_dirs.live_paths}
        for name, each in self._node.log_dirs.logs.items():
            of_directory = by_directory.get(each.directory)
            if of_directory is not None:
                of_directory[name] = each.high_watermark
        disk = self._node.disk

        def write() -> None:
            for path, values in by_directory.items():
                try:
                    write_offsets(disk, path, HIGH_WATERMARKS, values)
                except OSError as error:
                    raise LogDirectoryFailed(path, str(error)) from error

        self.in_thread(write)

    def _checkpoint_recovery_points(self) -> None:
        self._node.log_dirs.checkpoint_recovery_points()

    def _remove_garbage(self) -> None:
        self._node.log_dirs.remove_garbage(self._node.clock.wall_ms())

    def _sync_rolled(self) -> None:
        """Segments that were rolled are synced, so that a restart need not scan them."""
        for each in self._node.log_dirs.logs.values():
            if each.recovery_point < each.active_segment.base_offset:
                self.flush(each)

    def flush(self, partition_log: Log) -> None:
        """Sync a log in a thread."""
        work = partition_log.flush_work()
        if work is not None:
            self.in_thread(work, lambda _: partition_log.flushed(work))
