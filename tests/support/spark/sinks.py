"""A sink's life in memory: Kafka's transactions, and drivers and tasks that die between any two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from ottla.spark.errors import SparkRefused
from ottla.spark.exactly_once.decision import Batch, Decision, Driver, Prepared, Start
from ottla.spark.exactly_once.ids import is_ours, task_id
from ottla.spark.exactly_once.protocol import Sink

PREFIX = "copy"
DRIVER = "driver"


class Killed(BaseException):
    """kill -9: nothing runs after it."""


class Broken(SparkRefused):
    """A step has failed, and Spark gets to abort the batch."""


class Fenced(SparkRefused):
    """The cluster refuses who was replaced."""


@dataclass
class Transaction:
    """What a coordinator knows of a transactional id."""

    producer: int
    epoch: int = -1
    rows: list[int] = field(default_factory=list)
    is_open: bool = False
    was_committed: bool = False

    def end(self, commit: bool, output: list[int]) -> None:
        if commit:
            output.extend(self.rows)
        self.rows, self.is_open, self.was_committed = [], False, commit


class Kafka:
    """The cluster: ids, decisions in the order of their log, and what a reader of committed records sees."""

    def __init__(self) -> None:
        self.ids: dict[str, Transaction] = {}
        self.decisions: list[Decision] = []
        self.output: list[int] = []
        self.parts: dict[int, int] = {}
        """How many tasks wrote a batch when it was decided."""

    def take(self, name: str) -> tuple[int, int]:
        """InitProducerId: the next epoch; what was open is aborted."""
        one = self.ids.setdefault(name, Transaction(len(self.ids)))
        if one.is_open:
            one.end(False, self.output)
        one.epoch += 1
        return one.producer, one.epoch

    def write(self, name: str, epoch: int, rows: list[int]) -> None:
        if self.ids[name].epoch != epoch:
            raise Fenced(f"{name} was taken over", "-")
        self.ids[name].is_open = True
        self.ids[name].rows += rows

    def end(self, one: Prepared, commit: bool) -> bool:
        """EndTxn: whether it is ours to end; ending it again in the same way is no error."""
        known = self.ids[one.id]
        if known.epoch != one.epoch:
            return False
        if known.is_open:
            known.end(commit, self.output)
        return known.was_committed == commit

    def time_out(self) -> None:
        """Every open transaction lasts too long; its producer is fenced."""
        for one in self.ids.values():
            if one.is_open:
                one.end(False, self.output)
                one.epoch += 1

    @property
    def open_ids(self) -> list[str]:
        return [name for name, one in self.ids.items() if one.is_open]


class Steps:
    """The cluster as one driver reaches it; it dies at a step, before or after what the step does."""

    def __init__(
        self, kafka: Kafka, dies_at: int = 1_000_000, is_after: bool = False, only_fails: bool = False
    ) -> None:
        self.kafka = kafka
        self._only_fails = only_fails
        self._left = dies_at
        self._is_after = is_after

    def _step(self, effect: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0 and not self._is_after:
            raise self._end()
        done = effect()
        if self._left == 0:
            raise self._end()
        return done

    def _end(self) -> BaseException:
        return Broken("no answer", "-") if self._only_fails else Killed()

    def take_over(self) -> Driver:
        taken = self._step(lambda: self.kafka.take(DRIVER))
        assert isinstance(taken, tuple)
        return Driver(*taken)

    def is_current(self, driver: Driver) -> bool:
        return self.kafka.ids[DRIVER].epoch == driver.epoch

    def last_decision(self) -> Decision | None:
        return self.kafka.decisions[-1] if self.kafka.decisions else None

    def write(self, driver: Driver, decision: Decision) -> Driver:
        if self.kafka.ids[DRIVER].epoch != driver.epoch:
            raise Fenced("the driver was replaced", "-")
        self._step(lambda: self.kafka.decisions.append(decision))
        return driver.after_write()

    def commit(self, transactions: Sequence[Prepared]) -> list[str]:
        return [one.id for one in transactions if not self._step(lambda one=one: self.kafka.end(one, True))]

    def abort(self, transactions: Sequence[Prepared]) -> None:
        for one in transactions:
            self._step(lambda one=one: self.kafka.end(one, False))

    def sweep(self, driver: Driver) -> None:
        for name in self.kafka.open_ids:
            if is_ours(PREFIX, name, driver.epoch):
                self._step(lambda name=name: self.kafka.take(name))


ROWS = 24
BATCHES = 4


def rows_of(batch: int) -> list[int]:
    return list(range(batch * ROWS, (batch + 1) * ROWS))


def parted(rows: list[int], tasks: int) -> list[list[int]]:
    """How a shuffle of so many partitions distributes them."""
    return [rows[n::tasks] for n in range(tasks)]


class Life:
    """One life of a query's driver: batches from where Spark's commit log ends."""

    def __init__(
        self,
        kafka: Kafka,
        dice: Random,
        *,
        sink: type[Sink] = Sink,
        dies_at: int = 1_000_000,
        only_fails: bool = False,
        fails: bool = True,
    ) -> None:
        self.kafka = kafka
        self.dice = dice
        self.steps = Steps(kafka, dies_at, dice.random() < 0.5, only_fails)
        self.sink = sink(self.steps, fails_on_loss=fails)
        self.between: Callable[[], None] = lambda: None
        """What happens to the cluster between the tasks and the commit."""

    def run(self, done: list[int]) -> None:
        """All batches that ``done``, Spark's own commit log, does not have."""
        for number in range(len(done), BATCHES):
            self.batch(number)
            done.append(number)

    def batch(self, number: int) -> None:
        batch = Batch("query", number)
        start = self.sink.begin()
        written = [each for each in self.tasks(start, batch) if each is not None]
        self.between()
        if written:
            self.committed(start, batch, written)

    def committed(self, start: Start, batch: Batch, written: list[Prepared]) -> None:
        try:
            self.sink.commit(start, batch, written)
        except SparkRefused:
            self.sink.abort(start, batch, written)
            raise

    def tasks(self, start: Start, batch: Batch) -> list[Prepared | None]:
        count = self.dice.randint(1, 5)
        if not start.skips(batch):
            self.kafka.parts[batch.number] = count
        return [
            self.task(start, batch, n, rows) for n, rows in enumerate(parted(rows_of(batch.number), count))
        ]

    def task(self, start: Start, batch: Batch, number: int, rows: list[int]) -> Prepared | None:
        """Attempts may die when they have written a part, or be denied when they have written all."""
        if self.skips(start, batch, number):
            return None
        last = self.dice.choice([0, 0, 1, 2])
        for attempt in range(last + 1):
            prepared = self.attempt(start, number, attempt, rows)
        return prepared

    def attempt(self, start: Start, number: int, attempt: int, rows: list[int]) -> Prepared:
        name = task_id(PREFIX, start.driver.epoch, number, attempt)
        producer, epoch = self.kafka.take(name)
        self.kafka.write(name, epoch, rows)
        return Prepared(name, producer, epoch, len(rows))

    def skips(self, start: Start, batch: Batch, number: int) -> bool:
        return start.skips(batch)


def survive(kafka: Kafka, dice: Random, sink: type[Sink] = Sink, life: type[Life] = Life) -> None:
    """Lives one after another, each killed at some step, until one lives to the end."""
    done: list[int] = []
    for _ in range(dice.randint(1, 6)):
        only_fails = dice.random() < 0.3
        with suppress(Killed, Broken):
            life(kafka, dice, sink=sink, dies_at=dice.randint(1, 40), only_fails=only_fails).run(done)
    life(kafka, dice, sink=sink).run(done)


def is_exact(kafka: Kafka) -> bool:
    """Every row once, and nothing left open."""
    wanted = [row for batch in range(BATCHES) for row in rows_of(batch)]
    return sorted(kafka.output) == wanted and not kafka.open_ids
