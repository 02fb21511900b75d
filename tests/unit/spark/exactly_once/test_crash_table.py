"""Exactly-once writing, whoever dies when: each step of the crash table, and mistakes that it must find."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

pytest.importorskip("pyspark")

from ottla.spark.errors import DataLoss
from ottla.spark.exactly_once.decision import Batch, Decision, Driver, Start, State
from ottla.spark.exactly_once.ids import GENERATIONS, is_ours, task_id
from ottla.spark.exactly_once.protocol import Sink
from support.spark.sinks import (
    BATCHES,
    PREFIX,
    Fenced,
    Kafka,
    Killed,
    Life,
    Steps,
    is_exact,
    rows_of,
    survive,
)

SEEDS = 400


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("step", range(1, 25))
def test_a_driver_that_dies_at_any_step_costs_no_row_and_doubles_none(step: int, is_after: bool) -> None:
    kafka, done = Kafka(), list[int]()
    first = Life(kafka, Random(step), dies_at=step)
    first.steps = Steps(kafka, step, is_after)
    first.sink = Sink(first.steps)
    with pytest.raises(Killed):
        first.run(done)

    Life(kafka, Random(step + 1)).run(done)

    assert is_exact(kafka)


def test_lives_killed_again_and_again_write_each_row_once() -> None:
    for seed in range(SEEDS):
        kafka = Kafka()
        survive(kafka, Random(seed))
        assert is_exact(kafka), f"seed {seed}"


def test_a_batch_that_spark_repeats_after_it_was_done_is_skipped_whole() -> None:
    kafka, dice = Kafka(), Random(1)
    Life(kafka, dice).run([])

    Life(kafka, dice).run([0, 1, 2])  # The last entry of Spark's commit log was lost with the driver.

    assert is_exact(kafka)


def two_drivers(sink: type[Sink]) -> Kafka:
    """One has begun a batch when another takes its place, and goes on all the same."""
    kafka, dice, batch = Kafka(), Random(2), Batch("query", 0)
    old, new = Life(kafka, dice, sink=sink), Life(kafka, dice, sink=sink)
    start = old.sink.begin()
    written = [each for each in old.tasks(start, batch) if each is not None]
    newer = new.sink.begin()
    begun = [each for each in new.tasks(newer, batch) if each is not None]

    with suppress(Fenced):
        old.committed(start, batch, written)
    old.attempt(start, 0, 0, rows_of(0))  # One of its tasks lives on, too.
    with suppress(Fenced):
        new.committed(newer, batch, begun)
    Life(kafka, dice).run([0])
    return kafka


def test_a_driver_that_lives_on_after_it_was_replaced_decides_nothing_and_ends_nothing() -> None:
    assert is_exact(two_drivers(Sink))


def test_a_decided_batch_that_timed_out_is_told_until_the_user_goes_on_without() -> None:
    kafka, done = Kafka(), list[int]()
    first = Life(kafka, Random(3), dies_at=2)
    first.steps = Steps(kafka, 2, is_after=True)  # The second step is the first decision.
    first.sink = Sink(first.steps)
    with pytest.raises(Killed):
        first.run(done)
    assert kafka.decisions[-1].state is State.DECIDED
    kafka.time_out()

    for _ in range(2):
        with pytest.raises(
            DataLoss, match=r"24 of 24 records of batch 0 of query were aborted .* copy\.0\.0"
        ):
            Life(kafka, Random(4)).run(done)
    Life(kafka, Random(5), fails=False).run(done)

    assert sorted(kafka.output) == [row for batch in range(1, BATCHES) for row in rows_of(batch)]
    assert kafka.open_ids == []


def test_transactions_that_time_out_before_the_decision_stop_the_query_with_what_is_missing() -> None:
    kafka, done = Kafka(), list[int]()
    slow = Life(kafka, Random(6))
    slow.between = kafka.time_out

    with pytest.raises(DataLoss, match="24 of 24 records"):
        slow.run(done)


def test_another_query_with_the_same_prefix_begins_anew_and_ends_what_was_decided() -> None:
    kafka, dice = Kafka(), Random(7)
    first = Life(kafka, dice, dies_at=2)
    first.steps = Steps(kafka, 2, is_after=True)
    first.sink = Sink(first.steps)
    with pytest.raises(Killed):
        first.run([])

    start = Life(kafka, dice).sink.begin()

    assert not start.skips(Batch("another query", 0))
    assert sorted(kafka.output) == rows_of(0)


def test_versions_that_an_application_has_written_are_skipped() -> None:
    done = Decision(Batch("app", 7), State.DONE, ())

    start = Start(Driver(1, 1), done)

    assert [start.skips(Batch("app", n)) for n in (6, 7, 8)] == [True, True, False]
    assert not start.skips(Batch("other", 7))


def test_a_start_ends_its_own_transactions_and_older_ones_never_a_later_starts() -> None:
    for epoch in range(0, 200, 7):
        mine = [is_ours(PREFIX, task_id(PREFIX, epoch - age, 3, 0), epoch) for age in range(4)]
        later = [is_ours(PREFIX, task_id(PREFIX, epoch + age, 3, 0), epoch) for age in range(1, 5)]
        assert (mine, later) == ([True] * 4, [False] * 4)
    assert task_id(PREFIX, 1, 0, 0) == task_id(PREFIX, 1 + GENERATIONS, 0, 0), "ids are used again"
    for other in ("copy.driver", "copy.2.1.0.0", "copies.1.0.0", "copy"):
        assert not is_ours(PREFIX, other, 1), other


class NoDecision(Sink):
    """Commits without writing down that it will."""

    def commit(self, start: Start, batch: Batch, transactions: object) -> None:
        self._cluster.commit(list(transactions))  # type: ignore[call-overload]
        self._cluster.write(start.driver, Decision(batch, State.DONE, ()))


class AbortsDecided(Sink):
    """Ends a batch that failed without looking whether it was decided."""

    def abort(self, start: Start, batch: Batch, transactions: object) -> None:
        self._cluster.abort(transactions)  # type: ignore[arg-type]


class SweepsFirst(Sink):
    """Aborts what is open before it has ended what was decided."""

    def begin(self) -> Start:
        driver = self._cluster.take_over()
        self._cluster.sweep(driver)
        last = self._cluster.last_decision()
        if last is not None and last.state is not State.DONE:
            driver, last = self._finish(driver, last)
        return Start(driver, last)


class NoFence(Sink):
    """Does not take over at the start: the epoch is what it was."""

    def begin(self) -> Start:
        steps = self._cluster
        assert isinstance(steps, Steps)
        known = steps.kafka.ids.get("driver")
        driver = steps.take_over() if known is None else Driver(known.producer, known.epoch)
        last = steps.last_decision()
        if last is not None and last.state is not State.DONE:
            driver, last = self._finish(driver, last)
        steps.sweep(driver)
        return Start(driver, last)


class SkipsByTask(Life):
    """Of a batch that is written, the tasks write that it did not have then."""

    def skips(self, start: Start, batch: Batch, number: int) -> bool:
        return start.skips(batch) and number < self.kafka.parts[batch.number]


def is_found(sink: type[Sink] = Sink, life: type[Life] = Life) -> bool:
    """Whether some seed shows rows that are missing or doubled, or transactions that stay open."""
    for seed in range(SEEDS):
        kafka = Kafka()
        try:
            survive(kafka, Random(seed), sink, life)
        except (DataLoss, Fenced):
            return True
        if not is_exact(kafka):
            return True
    return False


@pytest.mark.parametrize("mistake", [NoDecision, AbortsDecided, SweepsFirst])
def test_mistakes_of_the_driver_are_found_by_killing(mistake: type[Sink]) -> None:
    assert is_found(mistake)


def test_skipping_tasks_instead_of_batches_is_found() -> None:
    assert is_found(life=SkipsByTask)


def test_a_start_that_fences_nobody_is_found() -> None:
    with pytest.raises(DataLoss):  # One has aborted what the other had decided.
        two_drivers(NoFence)
