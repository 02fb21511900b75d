"""The order of steps that makes a batch count once, whoever dies between two of them. No input, no output.

A driver begins a batch: it takes the driver's transactional id over, so that no older one can decide any
more, ends what the last decision has left to do, and aborts what nobody decided. The tasks write, each in a
transaction that stays open. Then the driver writes one decision, durable and fenced: before it the batch
never was, after it the batch is written. Only then are the transactions committed.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ottla.spark.errors import DataLoss
from ottla.spark.exactly_once.decision import Batch, Decision, Driver, Prepared, Start, State


class Cluster(Protocol):
    """What the steps need of Kafka. Every method is durable when it returns."""

    def take_over(self) -> Driver:
        """The driver's transactional id with a new epoch: older drivers can write no decision any more."""
        ...

    def is_current(self, driver: Driver) -> bool:
        """Whether nobody has taken over since."""
        ...

    def last_decision(self) -> Decision | None:
        """The newest one, after ``take_over``."""
        ...

    def write(self, driver: Driver, decision: Decision) -> Driver:
        """Write it, unless the driver was fenced, which raises."""
        ...

    def commit(self, transactions: Sequence[Prepared]) -> list[str]:
        """Commit open transactions; those that are committed already stay so. The ids of those that were
        aborted meanwhile."""
        ...

    def abort(self, transactions: Sequence[Prepared]) -> None:
        """Abort open transactions, unless others use their ids by now."""
        ...

    def sweep(self, driver: Driver) -> None:
        """Abort every transaction that this start, or an older one, has left open."""
        ...


class Sink:
    """One sink's batches, by its ``transactionalIdPrefix``."""

    def __init__(self, cluster: Cluster, *, fails_on_loss: bool = True) -> None:
        self._cluster = cluster
        self._fails = fails_on_loss

    def begin(self) -> Start:
        """Before the tasks of a batch."""
        driver = self._cluster.take_over()
        last = self._cluster.last_decision()
        if last is not None and last.state is not State.DONE:
            driver, last = self._finish(driver, last)
        self._cluster.sweep(driver)
        return Start(driver, last)

    def commit(self, start: Start, batch: Batch, transactions: Iterable[Prepared]) -> None:
        """After the tasks of a batch, of which none was skipped."""
        decision = Decision(batch, State.DECIDED, tuple(transactions))
        driver = self._cluster.write(start.driver, decision)
        driver, _ = self._finish(driver, decision)
        self._cluster.sweep(driver)

    def abort(self, start: Start, batch: Batch, transactions: Sequence[Prepared]) -> None:
        """After a batch that failed, perhaps in its commit: what was decided stays decided.

        Once a later start has taken over, it is its business what becomes of the transactions.
        """
        if not self._cluster.is_current(start.driver):
            return
        self._cluster.take_over()  # A decision that is still under way is in the log now, or never will be.
        last = self._cluster.last_decision()
        if last is None or not last.covers(batch):
            self._cluster.abort(transactions)

    def _finish(self, driver: Driver, decision: Decision) -> tuple[Driver, Decision]:
        """Commit what was decided. What cannot be committed any more is told before anything else."""
        undone = decision.undone
        if decision.state is State.DECIDED:
            undone = tuple(self._cluster.commit(decision.transactions))
        if undone and self._fails:
            if decision.state is State.DECIDED:
                self._cluster.write(driver, decision.as_undone(undone))
            raise _told(decision, undone)
        done = decision.as_done()
        return self._cluster.write(driver, done), done


def _told(decision: Decision, undone: Sequence[str]) -> DataLoss:
    """The sentence about a decided batch of which a part was aborted: by a time-out or by hand."""
    records = {each.id: each.records for each in decision.transactions}
    lost = sum(records.get(name, 0) for name in undone)
    listed = ", ".join(f"{name} ({records.get(name, 0)} records)" for name in undone)
    return DataLoss(
        f"data loss: {lost} of {sum(records.values())} records of {decision.batch} were aborted after the "
        f"batch was decided, because the driver was away longer than kafka.transaction.timeout.ms: {listed}",
        "write them again yourself, then go on without them with failOnDataLoss=false",
    )
