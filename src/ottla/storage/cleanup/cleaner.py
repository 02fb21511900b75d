"""Choose the log to compact next, the dirtiest first, and finish the run; one run at a time."""

from dataclasses import dataclass

from ottla.storage.cleanup.compaction import (
    Compaction,
    CompactionResult,
    Uncleanable,
    drop,
)
from ottla.storage.cleanup.plan import CompactionPlan, plan_compaction
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log


@dataclass(slots=True)
class CleanerRun:
    """A compaction to be run by a worker: call ``work``, then ``Cleaner.finished``."""

    log: Log
    plan: CompactionPlan
    work: Compaction


class Cleaner:
    """The compaction of all logs of a broker."""

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._run: CleanerRun | None = None
        self.uncleanable: dict[Log, str] = {}
        """Logs with a batch that cannot be read, and why: left alone until a restart."""

    def next_run(self, now_ms: int) -> CleanerRun | None:
        """The run that is due; ``None`` while another is under way or nothing is dirty enough."""
        if self._run is not None:
            return None
        self._forget_gone()
        best: tuple[Log, CompactionPlan] | None = None
        for log in self._log_dirs.logs.values():
            if not log.config.is_compacted or not self._may_clean(log):
                continue
            try:
                plan = plan_compaction(log, now_ms)
            except OSError as error:
                log.home.directory.fail(error)
            if plan is not None and (best is None or plan.dirty_ratio > best[1].dirty_ratio):
                best = (log, plan)
        if best is None:
            return None
        log, plan = best
        self._make_durable(log, plan.first_uncleanable_offset)
        self._run = CleanerRun(log, plan, Compaction(log.home.directory, plan))
        log.home.cleaning = self._run.work
        return self._run

    def _forget_gone(self) -> None:
        """Forget logs that were deleted, created again or moved."""
        for log in [each for each in self.uncleanable if self._log_dirs.get(each.partition) is not each]:
            del self.uncleanable[log]

    def _may_clean(self, log: Log) -> bool:
        """Do not compact a log with a future log: the copy may have old records whose tombstones would be
        removed, and they would come back."""
        return log not in self.uncleanable and self._log_dirs.futures.get(log.partition) is None

    def cancel(self) -> None:
        """Cancel the current run; what it has written is removed."""
        if self._run is not None:
            self._run.work.is_cancelled = True

    def _make_durable(self, log: Log, offset: int) -> None:
        """Raise the recovery point first: recovery would take gaps from compaction for lost tails."""
        if log.recovery_point < offset:
            log.flush()
        directory = log.home.directory
        if directory.recovery_points.get(log.partition, 0) < offset:
            self._log_dirs.checkpoints.write_recovery_points_of(directory)

    def finished(self, run: CleanerRun, outcome: CompactionResult | Uncleanable | None) -> bool:
        """Put the result in place and checkpoint it; ``None``: the run failed or was cancelled."""
        self._run = None
        log = run.log
        log.home.cleaning = None
        if run.work.is_cancelled or not log.config.is_compacted:
            if isinstance(outcome, CompactionResult) and log.home.directory.failure is None:
                drop(log.home.directory, outcome)
            return False
        if isinstance(outcome, Uncleanable):
            self.uncleanable[log] = outcome.reason
            return False
        if outcome is None or self._log_dirs.get(log.partition) is not log or not swap_in(log, outcome):
            return False
        self._log_dirs.checkpoints.write_cleaner_offsets_of(log.home.directory)
        return True
