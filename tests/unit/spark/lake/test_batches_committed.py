"""A batch and where it ends become a table's in one commit, whoever else commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.model.ids import TopicPartition
from ottla.spark.errors import SparkRefused
from ottla.spark.lake.copying import Copying, Reached, joined, part_of
from ottla.spark.lake.files import Written
from ottla.spark.read.ranges import OffsetRange

AT_0: Reached = {"t": {"0": 0}}


class ATable:
    """Commits build on what was read last; ``meanwhile`` is what somebody else does before one."""

    name = "here"

    def __init__(self, held: Reached | None = None) -> None:
        self.held = held or {}
        self.files: list[Written] = []
        self.meanwhile: list[Callable[[], None]] = []

    def reached(self) -> Reached:
        return dict(self.held)

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        if self.meanwhile:
            self.meanwhile.pop(0)()
            return False
        self.files += files
        self.held = reached
        return True


class AReader:
    """A topic that ends at 10, then at 20."""

    def __init__(self) -> None:
        self._ends = iter([10, 20])

    def initialOffset(self) -> Reached:
        return AT_0

    def latestOffset(self, start: Any = None, limit: Any = None) -> Reached:
        end = next(self._ends, None)
        return dict(start) if end is None else {"t": {"0": end}, "leader epochs": {"t": {"0": 3}}}

    def partitions(self, start: Reached, end: Reached) -> list[OffsetRange]:
        return [OffsetRange(TopicPartition("t", 0), start["t"]["0"], end["t"]["0"])]


def write(ranges: Sequence[OffsetRange]) -> list[Written]:
    return [Written("f", 1, "t", 0, one.size, one.start, one.end - 1, 0, 0) for one in ranges]


def a_copying(table: ATable) -> Copying:
    return Copying(table, AReader(), ["t"], write)


def test_batches_follow_each_other_until_there_is_nothing_new() -> None:
    table = ATable()
    copying = a_copying(table)

    steps = [copying.step(), copying.step(), copying.step()]

    assert [None if step is None else step[0].rows for step in steps] == [10, 10, None]
    assert table.held == {"t": {"0": 20}, "leader epochs": {"t": {"0": 3}}}


def test_commits_of_others_do_not_stand_in_the_way() -> None:
    table = ATable({"other": {"0": 5}})
    table.meanwhile.append(lambda: table.held.update({"other": {"0": 6}}))

    a_copying(table).step()

    assert len(table.files) == 1
    assert table.held["other"] == {"0": 6}
    assert table.held["t"] == {"0": 10}


def test_a_commit_that_seemed_to_fail_is_not_repeated() -> None:
    table = ATable()

    def landed() -> None:
        table.held = {"t": {"0": 10}, "leader epochs": {"t": {"0": 3}}}

    table.meanwhile.append(landed)

    a_copying(table).step()

    assert table.files == []


def test_a_table_that_another_run_has_taken_further_is_refused() -> None:
    table = ATable()
    table.meanwhile.append(lambda: table.held.update({"t": {"0": 7}}))

    with pytest.raises(SparkRefused, match="another run has copied the same topics to here meanwhile"):
        a_copying(table).step()

    assert table.files == []


def test_ranges_without_a_record_are_noted_with_the_next_file() -> None:
    table = ATable()
    found: list[list[Written]] = [[], write([OffsetRange(TopicPartition("t", 0), 10, 20)])]
    copying = Copying(table, AReader(), ["t"], lambda _: found.pop(0))

    copying.step()
    before = dict(table.held)
    copying.step()

    assert before == {}
    assert table.held["t"] == {"0": 20}


def test_what_is_said_of_other_topics_stays() -> None:
    both: Reached = {
        "a": {"0": 1},
        "b": {"0": 2},
        "topic ids": {"a": "x", "b": "y"},
        "began at": {"a": {"0": 0}},
    }

    assert part_of(both, ["b"]) == {"b": {"0": 2}, "topic ids": {"b": "y"}}
    assert joined(both, {"a": {"0": 9}, "topic ids": {"a": "x"}}) == {
        "a": {"0": 9},
        "b": {"0": 2},
        "topic ids": {"a": "x", "b": "y"},
    }
