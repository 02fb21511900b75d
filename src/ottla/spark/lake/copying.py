"""From topics into a table, batch by batch: read how far the table is, write files, commit both together.

The table is the only memory. A commit holds a batch's files and where it ends: offsets, leader epochs and
topic ids. Whoever dies before it leaves files that no table names; whoever dies behind it, a whole batch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql.datasource import InputPartition

from ottla.spark.errors import SparkRefused
from ottla.spark.lake.files import Written
from ottla.spark.read.offsets import BEGAN, EPOCHS, IDS

Reached = dict[str, Any]
"""Where a batch ends, as a stream's checkpoint has it."""
COMMIT_ATTEMPTS = 20


class Lake(Protocol):
    """A table that remembers how far it holds the topics."""

    name: str

    def reached(self) -> Reached:
        """What the newest commit says; empty where there is none. Later commits build on it."""

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        """Add the files, and note where they end; false if somebody else has committed since ``reached``."""


class Reader(Protocol):
    """Plans batches, and refuses those of lost or changed logs (a stream's reader)."""

    def initialOffset(self) -> Reached: ...

    def latestOffset(self, start: Any = None, limit: Any = None) -> Reached: ...

    def partitions(self, start: Reached, end: Reached) -> Sequence[InputPartition]: ...


class Copying:
    """One run's work on one table."""

    def __init__(
        self,
        lake: Lake,
        reader: Reader,
        topics: Collection[str],
        write_all: Callable[[Sequence[Any]], list[Written]],
    ) -> None:
        self._lake = lake
        self._reader = reader
        self._topics = topics
        self._write_all = write_all
        self._held = part_of(lake.reached(), topics)
        """What the table says of our topics."""
        self._at = self._held or reader.initialOffset()

    def plan(self) -> tuple[Sequence[Any], Reached] | None:
        """The next batch: its ranges, and where it ends; ``None`` where there is nothing new."""
        end = self._reader.latestOffset(self._at)
        if end == self._at:
            return None
        return self._reader.partitions(self._at, end), end

    def step(self) -> list[Written] | None:
        """Copy the next batch; its files, or ``None`` where there is nothing new."""
        planned = self.plan()
        if planned is None:
            return None
        ranges, end = planned
        files = self._write_all(ranges) if ranges else []
        if files:  # Where all were markers of transactions, the next commit will say so.
            self._commit(files, end)
            self._held = end
        self._at = end
        return files

    def _commit(self, files: Sequence[Written], end: Reached) -> None:
        """Others may add to the table meanwhile; but nobody else our topics."""
        for _ in range(COMMIT_ATTEMPTS):
            found = self._lake.reached()
            mine = part_of(found, self._topics)
            if mine == end:
                return  # A commit that seemed to fail.
            if mine != self._held:
                raise SparkRefused(
                    f"another run has copied the same topics to {self._lake.name} meanwhile, and nothing of "
                    "this batch was added",
                    "let one run at a time copy a topic into a table, then run the command again",
                )
            if self._lake.commit(files, joined(found, end)):
                return
        raise SparkRefused(
            f"others commit to {self._lake.name} all the time, and nothing of this batch was added",
            "run the command again when they pause",
        )


def part_of(reached: Mapping[str, Any], topics: Collection[str]) -> Reached:
    """What is said of some topics."""
    found = {topic: offsets for topic, offsets in reached.items() if topic in topics}
    for key in (IDS, BEGAN, EPOCHS):
        if inner := {topic: row for topic, row in reached.get(key, {}).items() if topic in topics}:
            found[key] = inner
    return found


def joined(reached: Reached, newer: Reached) -> Reached:
    """What was known of all topics, and what is new of some."""
    both = reached | newer
    for key in (IDS, BEGAN, EPOCHS):
        topics = set(newer) - {IDS, BEGAN, EPOCHS}
        older = {topic: row for topic, row in reached.get(key, {}).items() if topic not in topics}
        both.pop(key, None)
        if inner := older | newer.get(key, {}):
            both[key] = inner
    return both
