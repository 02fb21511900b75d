"""Queries killed with -9 at random moments and started again: the archive is exact, the copy holds all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_partitions, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from support.spark import query
from support.spark.feed import Feed, contents, repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.full("starts a Spark of its own"),
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

START_S_MAX = 180
SEED = 20
SINK_BATCHES = "_spark_metadata"


class Life:
    """One life of the program that runs the queries."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, query.__file__, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_line(self, start: str, end: str = "") -> None:
        """Wait for a line that begins and ends so."""
        while True:
            try:
                line = self._lines.get(timeout=START_S_MAX)
            except Empty:
                raise AssertionError(f"no line {start!r}: {self._errors()}") from None
            assert line, f"it ended before {start!r}: {self._errors()}"
            if line.startswith(start) and line.rstrip().endswith(end):
                return

    def outlives(self, seconds: float) -> bool:
        """Let it run for so long; whether it still does."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self) -> None:
        """End it and its Java as a crash would. Python workers end when they lose their Java."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _errors(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]


@contextmanager
def a_life(arguments: list[str], log: Path) -> Iterator[Life]:
    life = Life(arguments, log)
    try:
        yield life
    finally:
        life.kill()


def test_killed_queries_lose_nothing_and_the_archive_repeats_nothing(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, long_form: bool
) -> None:
    kills = 20 if long_form else 2
    dice = random.Random(SEED)
    servers, log = cluster.bootstrap_servers, tmp_path / "errors"
    with Client(servers) as client:
        topics = [a_topic(name, partitions=3, replication_factor=3) for name in ("fed", "copied")]
        client.run(create_topics, topics)
    arguments = [servers, "fed", "copied", str(tmp_path)]

    with Feed(servers, "fed", 3) as feed:
        for number in range(kills):
            with a_life(arguments, log) as life:
                life.await_line(query.UP)
                if number % 4:
                    life.await_line("batch ", "and copies")
                    assert life.outlives(dice.uniform(0, 1.5)), log.read_text()[-4000:]
                else:  # While the last life's work is repeated.
                    assert life.outlives(dice.uniform(0.5, 6)), log.read_text()[-4000:]
            if number == kills // 2 - 1:
                with Client(servers) as client:
                    client.run(create_partitions, {"fed": 5})
                feed.partitions = 5
        count = feed.stop()
    query.run(spark, *arguments, follows=False)

    written = contents(servers, "fed")
    assert sorted(written.values()) == list(range(count))
    assert {partition for partition, _ in written} == set(range(5))
    rows = spark.read.parquet(str(tmp_path / "archive")).selectExpr(
        "partition", "offset", "cast(cast(value AS string) AS long) AS number"
    )
    archived = [(row["partition"], row["offset"], row["number"]) for row in rows.collect()]
    assert sorted(archived) == sorted((*place, number) for place, number in written.items())
    copies = list(contents(servers, "copied").values())
    assert set(copies) == set(written.values())
    batches = len([f for f in (tmp_path / "archive" / SINK_BATCHES).iterdir() if f.name[0] != "."])
    sys.stderr.write(
        f"{kills} kills, {batches} files of the sink's log, {len(written)} records archived once each, "
        f"{repeated(copies)} of the copies repeated\n"
    )
