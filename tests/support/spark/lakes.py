"""Copies of topics into tables without Spark, in one process that kills itself with -9 at a named point."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence

from ottla.spark.jobs import archive, lake
from ottla.spark.jobs.shared.copies import CopyOptions, OpenTable
from ottla.spark.lake.copying import Copying, Reached
from ottla.spark.lake.files import Written, write_range
from ottla.spark.lake.sink_log import SinkLog
from ottla.spark.options.schema import read_schema
from ottla.spark.read.ranges import OffsetRange
from ottla.spark.read.stream import StreamReader

POINTS = ("planned", "a file is written", "all files are written", "before a commit", "after a commit")
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class Death:
    """Comes at the ``count``-th time that a point is reached."""

    def __init__(self, point: str, count: int) -> None:
        self._point, self._count = point, count

    def reach(self, point: str) -> None:
        self._count -= point == self._point
        if self._count == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalTable:
    """A table whose driver may die beside its commits."""

    def __init__(self, table: OpenTable, death: Death) -> None:
        self._table, self._death = table, death
        self.name = table.name

    def reached(self) -> Reached:
        return self._table.reached()

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        self._death.reach("before a commit")
        is_done = self._table.commit(files, reached)
        self._death.reach("after a commit")
        return is_done


def opened(options: CopyOptions) -> OpenTable:
    """The table of a job."""
    if isinstance(options, lake.LakeOptions):
        return lake.opened(options)
    assert isinstance(options, archive.ArchiveOptions)
    log = SinkLog(options.directory)
    log.begin()
    return log


def a_copying(options: CopyOptions, death: Death | None = None) -> Copying:
    """A run's work, its tasks one behind the other in this process."""
    death = death or Death("", 1)
    table, read = opened(options), options.reading()
    reader = StreamReader(read, read_schema(True))
    reader.prepareForTriggerAvailableNow()

    def write_all(ranges: Sequence[OffsetRange]) -> list[Written]:
        death.reach("planned")
        files = []
        for wanted in ranges:
            files.append(write_range(read, table.layout, wanted))
            death.reach("a file is written")
        death.reach("all files are written")
        return [one for one in files if one is not None]

    return Copying(MortalTable(table, death), reader, options.topics.split(","), write_all)


def copy(options: CopyOptions, death: Death | None = None) -> int:
    """Copy all there is; how many records."""
    copying, rows = a_copying(options, death), 0
    while (files := copying.step()) is not None:
        rows += sum(one.rows for one in files)
    return rows


def live(options: CopyOptions, point: str, count: int, catalog: dict[str, str]) -> None:
    """One run; ``catalog`` are the variables that pyiceberg looks for."""
    os.environ.update(catalog)
    copy(options, Death(point, count))


def killed_at(options: CopyOptions, point: str, count: int) -> bool:
    """One run in a process of its own; whether it died as it was told to."""
    catalog = {name: value for name, value in os.environ.items() if name.startswith("PYICEBERG")}
    life = _processes.Process(target=live, args=(options, point, count, catalog))
    life.start()
    life.join()
    assert life.exitcode in (0, -signal.SIGKILL), f"{point}: exit code {life.exitcode}"
    return life.exitcode != 0
