"""What a broker does with its logs from time to time: lag, checkpoints, syncing, retention, cleaning.

The disk's slow answers (fsync above all) are waited for in a thread. What such work needs is taken from the
logs beforehand, in the loop: a log is only ever touched by one thread.
"""

import logging
from collections.abc import Callable
from typing import Any

from ottla.broker.replicas.hosted import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import BREATH, Steps
from ottla.broker.runtime.timers import Timer
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.storage.cleanup.cleaner import Cleaner, CleanerRun
from ottla.storage.cleanup.compaction import Uncleanable
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.directories.high_watermark_work import HighWatermarkWork
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import FlushWork

log = logging.getLogger(__name__)

FLUSH_INTERVAL_MS = 2_000
GARBAGE_INTERVAL_MS = 15_000


class Housekeeping:
    """Runs each of these chores in its interval."""

    def __init__(self, runtime: Runtime, log_dirs: LogDirs, partitions: Partitions) -> None:
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._timers: dict[str, Timer] = {}
        self._cleaner: Cleaner | None = None
        self._is_stopped = False
        self._at_work = 0
        self._when_quiet: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin; intervals are read again each time, so that a changed setting takes effect."""
        runtime, log_dirs = self._runtime, self._log_dirs
        logs = runtime.config.log_management
        if logs.log_cleaner_enable:
            self._cleaner = Cleaner(log_dirs)
            self._every("cleaning", lambda: runtime.config.log_management.log_cleaner_backoff_ms, self._clean)
        self._every("lag", lambda: runtime.config.replication.replica_lag_time_max_ms // 2, self._check_lag)
        self._every(
            "high watermarks",
            lambda: runtime.config.replication.replica_high_watermark_checkpoint_interval_ms,
            self._checkpoint_high_watermarks,
        )
        self._every(
            "recovery points",
            lambda: logs.log_flush_offset_checkpoint_interval_ms,
            lambda: log_dirs.checkpoints.write_recovery_points(),
        )
        self._every("flush", lambda: FLUSH_INTERVAL_MS, self._flush)
        self._every(
            "garbage",
            lambda: GARBAGE_INTERVAL_MS,
            lambda: log_dirs.remove_garbage(runtime.clock.monotonic_ms()),
        )
        self._every(
            "retention",
            lambda: runtime.config.log_management.log_retention_check_interval_ms,
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
        """Call ``then`` once no thread works on the log directories any more."""
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
                self._timers[name] = self._runtime.timers.after(max(1, interval_ms()), run)

        self._timers[name] = self._runtime.timers.after(max(1, interval_ms()), run)

    def _guarded(self, task: Callable[[], None]) -> None:
        if self._is_stopped:
            return
        try:
            task()
        except LogDirectoryFailed as failed:
            self._partitions.directory_failed(failed)

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
                    self._partitions.directory_failed(outcome)
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

        self._runtime.threads.run(work, done)

    # --- tasks ----------------------------------------------------------------------------------------

    def _check_lag(self) -> None:
        now_ms = self._runtime.clock.monotonic_ms()
        for partition in self._partitions.all():
            partition.check_lag(now_ms)

    def _checkpoint_high_watermarks(self) -> None:
        for work in self._log_dirs.checkpoints.high_watermark_work():
            self._note(work)

    def _note(self, work: HighWatermarkWork) -> None:
        self.in_thread(work, lambda _: work.put_in_place(), lambda _: work.give_up())

    def _flush(self) -> None:
        """Rolled segments, so that a restart need not scan them; and logs with ``flush.ms``."""
        for each, work in self._log_dirs.flushes_due(self._runtime.clock.wall_ms()):
            self.in_thread(work, self._flushed(each, work))

    def _flushed(self, partition_log: Log, work: FlushWork) -> Callable[[Any], None]:
        def done(_: Any) -> None:
            if self._log_dirs.get(partition_log.partition) is partition_log:
                partition_log.flushed(work, self._runtime.clock.wall_ms())

        return done

    def _apply_retention(self) -> None:
        self._runtime.own.spawn(self._retain(list(self._log_dirs.logs)))

    def _retain(self, names: list[TopicPartition]) -> Steps[None]:
        """Looking at one log may mean reading the indexes of all its segments: others get their turn."""
        now_ms = self._runtime.clock.wall_ms()
        has_deleted = False
        try:
            for name in names:
                has_deleted |= self._retain_one(name, now_ms)
                yield BREATH
                if self._is_stopped:
                    return
            if has_deleted:
                for path in self._log_dirs.live_paths:
                    self._log_dirs.checkpoints.write_log_starts_of(self._log_dirs.directories[path])
        except LogDirectoryFailed as failed:
            self._partitions.directory_failed(failed)

    def _retain_one(self, name: TopicPartition, now_ms: int) -> bool:
        """Delete the old segments of a log; whether there were any."""
        each = self._log_dirs.get(name)
        if each is None:
            return False
        has_deleted = False
        for plan in apply_retention(each, now_ms):
            has_deleted = True
            log.info(
                "old segments deleted partition=%s segments=%d start=%d reason=%s",
                name,
                plan.segment_count,
                each.log_start_offset,
                plan.reason.value,
            )
            partition = self._partitions.find(*name)
            if partition is not None:
                partition.log_start_moved()
        return has_deleted

    def _expire_producers(self) -> None:
        now_ms = self._runtime.clock.wall_ms()
        expiration_ms = self._runtime.config.log_management.producer_id_expiration_ms
        for each in self._log_dirs.logs.values():
            each.expire_producers(now_ms, expiration_ms)

    def _clean(self) -> None:
        """Compact one log, in a thread; then look for the next at once."""
        assert self._cleaner is not None, "cleaning is on"
        run = self._cleaner.next_run(self._runtime.clock.wall_ms())
        if run is not None:
            self.in_thread(run.work, self._cleaned(self._cleaner, run), self._not_cleaned(self._cleaner, run))

    def _cleaned(self, cleaner: Cleaner, run: CleanerRun) -> Callable[[Any], None]:
        def done(outcome: Any) -> None:
            is_cleaned = cleaner.finished(run, outcome)
            self._runtime.own.spawn(self._retain([run.log.partition]))  # what had to wait for the run
            if is_cleaned:
                log.info("log compacted partition=%s dirty=%.2f", run.log.partition, run.plan.dirty_ratio)
                self._clean()

        return done

    def _not_cleaned(self, cleaner: Cleaner, run: CleanerRun) -> Callable[[Exception], None]:
        def failed(error: Exception) -> None:
            cleaner.finished(run, Uncleanable(f"{type(error).__name__}: {error}"))

        return failed
