"""What a broker does with its logs from time to time: lag, checkpoints, syncing, retention, cleaning.

The disk's slow answers (fsync above all) are waited for in a thread. What such work needs is taken from the
logs beforehand, in the loop: a log is only ever touched by one thread.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.timers import Timer
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.storage.cleaner import Cleaner, CleanerRun
from ottla.storage.compaction import Uncleanable
from ottla.storage.log import Log
from ottla.storage.outcomes import FlushWork, HighWatermarkWork
from ottla.storage.retention import apply_retention

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

FLUSH_INTERVAL_MS = 2_000
GARBAGE_INTERVAL_MS = 15_000
LOGS_PER_TURN = 50
"""How many logs retention looks at before others get their turn."""


class Background:
    """The broker's housekeeping."""

    __slots__ = ("_at_work", "_cleaner", "_is_stopped", "_node", "_timers", "_when_quiet")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._timers: dict[str, Timer] = {}
        self._cleaner: Cleaner | None = None
        self._is_stopped = False
        self._at_work = 0
        self._when_quiet: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin; intervals are read anew each time, so that a changed setting counts."""
        node = self._node
        logs = node.config.log_management
        if logs.log_cleaner_enable:
            self._cleaner = Cleaner(node.log_dirs)
            self._every("cleaning", lambda: node.config.log_management.log_cleaner_backoff_ms, self._clean)
        self._every("lag", lambda: node.config.replication.replica_lag_time_max_ms // 2, self._check_lag)
        self._every(
            "high watermarks",
            lambda: node.config.replication.replica_high_watermark_checkpoint_interval_ms,
            self._checkpoint_high_watermarks,
        )
        self._every(
            "recovery points",
            lambda: logs.log_flush_offset_checkpoint_interval_ms,
            lambda: node.log_dirs.checkpoint_recovery_points(),
        )
        self._every("flush", lambda: FLUSH_INTERVAL_MS, self._flush)
        self._every(
            "garbage",
            lambda: GARBAGE_INTERVAL_MS,
            lambda: node.log_dirs.remove_garbage(node.clock.monotonic_ms()),
        )
        self._every(
            "retention",
            lambda: node.config.log_management.log_retention_check_interval_ms,
            self._apply_retention,
        )
        self._every(
            "producers", lambda: logs.producer_id_expiration_check_interval_ms, self._expire_producers
        )

    def stop(self) -> None:
        """Begin nothing new, and do not wait for the end of a compaction."""
        self._is_stopped = True
        if self._cleaner is not None:
            self._cleaner.cancel()
        for timer in self._timers.values():
            timer.cancel()

    def when_quiet(self, then: Callable[[], None]) -> None:
        """Call this once no thread works on the log directories any more."""
        if self._at_work:
            self._when_quiet.append(then)
        else:
            then()

    # --- scheduling -----------------------------------------------------------------------------------

    def _every(self, name: str, interval_ms: Callable[[], int], task: Callable[[], None]) -> None:
        def run() -> None:
            try:
                self._guarded(task)
            finally:  # a mistake is told, and is no reason never to try again
                self._timers[name] = self._node.timers.after(max(1, interval_ms()), run)

        self._timers[name] = self._node.timers.after(max(1, interval_ms()), run)

    def _guarded(self, task: Callable[[], None]) -> None:
        if self._is_stopped:
            return
        try:
            task()
        except LogDirectoryFailed as failed:
            self._node.partitions.directory_failed(failed)

    def in_thread(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Do this off the loop; ``then`` gets the outcome, None when a directory failed over it.

        ``failed`` hears of any other error, before it is raised.
        """
        self._at_work += 1

        def done(outcome: Any) -> None:
            self._at_work -= 1
            try:
                if isinstance(outcome, LogDirectoryFailed):
                    self._node.partitions.directory_failed(outcome)
                    outcome = None
                elif isinstance(outcome, Exception):
                    failed(outcome)
                    raise outcome
                self._guarded(lambda: then(outcome))
            finally:
                if not self._at_work:
                    waiting, self._when_quiet = self._when_quiet, []
                    for each in waiting:
                        each()

        self._node.run_in_thread(work, done)

    # --- tasks ----------------------------------------------------------------------------------------

    def _check_lag(self) -> None:
        now_ms = self._node.clock.monotonic_ms()
        for partition in self._node.partitions.all():
            partition.check_lag(now_ms)

    def _checkpoint_high_watermarks(self) -> None:
        for work in self._node.log_dirs.high_watermark_work():
            self._note(work)

    def _note(self, work: HighWatermarkWork) -> None:
        self.in_thread(work, lambda _: work.put_in_place(), lambda _: work.give_up())

    def _flush(self) -> None:
        """Rolled segments, so that a restart need not scan them; and logs with ``flush.ms``."""
        for each, work in self._node.log_dirs.flushes_due(self._node.clock.wall_ms()):
            self.in_thread(work, self._flushed(each, work))

    def _flushed(self, partition_log: Log, work: FlushWork) -> Callable[[Any], None]:
        def done(_: Any) -> None:
            if self._node.log_dirs.get(partition_log.partition) is partition_log:
                partition_log.flushed(work, self._node.clock.wall_ms())

        return done

    def _apply_retention(self) -> None:
        self._retain(list(self._node.log_dirs.logs), has_deleted=False)

    def _retain(self, names: list[TopicPartition], *, has_deleted: bool) -> None:
        """Some logs a turn: looking at one may mean reading the indexes of all its segments."""
        now_ms = self._node.clock.wall_ms()
        for name in names[:LOGS_PER_TURN]:
            each = self._node.log_dirs.get(name)
            if each is None:
                continue
            for plan in apply_retention(each, now_ms):
                has_deleted = True
                log.info(
                    "old segments deleted partition=%s segments=%d start=%d reason=%s",
                    name,
                    plan.segment_count,
                    each.log_start_offset,
                    plan.reason.value,
                )
                partition = self._node.partitions.find(*name)
                if partition is not None:
                    partition.log_start_moved()
        rest = names[LOGS_PER_TURN:]
        if rest:
            self._timers["retention, next"] = self._node.timers.after(
                0, lambda: self._guarded(lambda: self._retain(rest, has_deleted=has_deleted))
            )
        elif has_deleted:
            for path in self._node.log_dirs.live_paths:
                self._node.log_dirs.checkpoint_log_starts(self._node.log_dirs.directories[path])

    def _expire_producers(self) -> None:
        now_ms = self._node.clock.wall_ms()
        expiration_ms = self._node.config.log_management.producer_id_expiration_ms
        for each in self._node.log_dirs.logs.values():
            each.expire_producers(now_ms, expiration_ms)

    def _clean(self) -> None:
        """Compact one log, in a thread; then look for the next at once."""
        assert self._cleaner is not None, "cleaning is on"
        run = self._cleaner.next_run(self._node.clock.wall_ms())
        if run is not None:
            self.in_thread(run.work, self._cleaned(self._cleaner, run), self._not_cleaned(self._cleaner, run))

    def _cleaned(self, cleaner: Cleaner, run: CleanerRun) -> Callable[[Any], None]:
        def done(outcome: Any) -> None:
            is_cleaned = cleaner.finished(run, outcome)
            self._retain([run.log.partition], has_deleted=False)  # what had to wait for the run
            if is_cleaned:
                log.info("log compacted partition=%s dirty=%.2f", run.log.partition, run.plan.dirty_ratio)
                self._clean()

        return done

    def _not_cleaned(self, cleaner: Cleaner, run: CleanerRun) -> Callable[[Exception], None]:
        def failed(error: Exception) -> None:
            cleaner.finished(run, Uncleanable(f"{type(error).__name__}: {error}"))

        return failed
