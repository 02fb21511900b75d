"""A query without Spark: driver and tasks in one process, which kills itself with -9 at a named point.

Kafka, the steps of exactly-once writing and the writing of rows are real. What Spark adds is a note of the
batches that are done, here a file.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa

from ottla.client.admin.topics import describe_topics
from ottla.client.admin.transactions import list_transactions
from ottla.client.blocking.client import Client
from ottla.client.fetching.offsets import list_offsets
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from ottla.spark.errors import SparkRefused
from ottla.spark.exactly_once.decision import Batch, Decision, Driver, Prepared
from ottla.spark.exactly_once.kafka import KafkaCluster
from ottla.spark.exactly_once.protocol import Sink
from ottla.spark.exactly_once.writing import Begun, Place
from ottla.spark.options.write import write_options
from ottla.spark.runtime.connections import client_for
from ottla.spark.write.sinks import write_rows

BATCHES = 3
ROWS = 12
POINTS = (
    "taken over",
    "swept",
    "a task writes",
    "a task has flushed",
    "before decided",
    "after decided",
    "between two commits",
    "before done",
    "after done",
)
REFUSED = 3
"""The exit code of a life that refused to go on."""
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class DyingCluster(KafkaCluster):
    """Dies at the ``count``-th time that it comes to a point."""

    point = ""
    count = 1

    def reach(self, point: str) -> None:
        self.count -= point == self.point
        if self.count == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def take_over(self) -> Driver:
        driver = super().take_over()
        self.reach("taken over")
        return driver

    def write(self, driver: Driver, decision: Decision) -> Driver:
        self.reach(f"before {decision.state.value}")
        written = super().write(driver, decision)
        self.reach(f"after {decision.state.value}")
        return written

    def commit(self, transactions: Sequence[Prepared]) -> list[str]:
        if self.point == "between two commits":
            super().commit(transactions[:1])
            self.reach("between two commits")
        return super().commit(transactions)

    def sweep(self, driver: Driver) -> None:
        super().sweep(driver)
        self.reach("swept")


def live(
    servers: str, topic: str, note: str, point: str, count: int, seed: int, settings: dict[str, str]
) -> None:
    """One life: the batches that are not noted. What it refuses stands in the file then."""
    try:
        _live(servers, topic, Path(note), point, count, Random(seed), settings)
    except SparkRefused as refused:
        Path(f"{note}.told").write_text(str(refused))
        raise SystemExit(REFUSED) from refused


def _live(
    servers: str, topic: str, place: Path, point: str, count: int, dice: Random, settings: dict[str, str]
) -> None:
    given = {"kafka.bootstrap.servers": servers, "topic": topic, "transactionalIdPrefix": f"to-{topic}"}
    options = write_options(given | settings)
    cluster = DyingCluster(client_for(options.kafka.client), options.kafka.producer, f"to-{topic}")
    cluster.point, cluster.count = point, count
    assert options.exactly_once is not None
    sink = Sink(cluster, fails_on_loss=options.exactly_once.fails_on_loss)
    for number in range(int(place.read_text()), BATCHES):
        begun = Begun(sink.begin(), Batch("query", number))
        prepared = []
        tasks = dice.randint(2, 4)  # A repeated batch may be distributed in another way.
        for task in range(tasks):
            written = write_rows(options, _rows(cluster, number, task, tasks), begun, Place(task, 0))
            assert written.refusal is None, written.refusal
            assert written.part is not None
            prepared += [written.part.prepared] if written.part.prepared is not None else []
            cluster.reach("a task has flushed")
        if prepared:
            sink.commit(begun.start, Batch("query", number), prepared)
        place.write_text(str(number + 1))


def _rows(cluster: DyingCluster, number: int, task: int, tasks: int) -> Iterator[pa.RecordBatch]:
    for n in range(number * ROWS + task, (number + 1) * ROWS, tasks):
        yield pa.RecordBatch.from_pydict({"key": [b"%d" % n], "value": [b"%d" % n]})
        cluster.reach("a task writes")


def killed_at(
    servers: str, topic: str, note: Path, point: str, count: int, seed: int, **settings: str
) -> bool:
    """One life in a process of its own; whether it died as it was told to, or refused to go on."""
    life = _processes.Process(target=live, args=(servers, topic, str(note), point, count, seed, settings))
    life.start()
    life.join()
    assert life.exitcode in (0, REFUSED, -signal.SIGKILL), f"{point}: exit code {life.exitcode}"
    return life.exitcode != 0


def committed(servers: str, topic: str) -> list[int]:
    """What a reader of committed records finds, up to the end as it is now."""
    with Client(servers) as client:
        (found,) = client.run(describe_topics, [topic]).topics
        partitions = [TopicPartition(topic, row.partition_index) for row in found.partitions]
        ends = client.run(list_offsets, dict.fromkeys(partitions, LATEST))
        consumer = client.consumer(isolation_level="read_committed", max_poll_records=5_000)
        consumer.assign(dict.fromkeys(partitions, 0))
        numbers: list[int] = []
        while any((consumer.position(p) or 0) < ends[p].offset for p in partitions):
            for records in consumer.poll(100).values():
                numbers += [int(record.value or b"") for record in records]
        return sorted(numbers)


def open_transactions(servers: str, prefix: str) -> list[str]:
    """Those of a sink that nobody has ended."""
    with Client(servers) as client:
        listed = client.run(list_transactions)
    rows = [row for each in listed.values() for row in each if row.transactional_id.startswith(prefix)]
    return [row.transactional_id for row in rows if row.transaction_state == "Ongoing"]


def survives(servers: str, topic: str, note: Path, point: str, dice: Random) -> None:
    """Killed at a point, once or twice, then a life to the end: each row is there once, nothing is open."""
    note.write_text("0")
    count = 1 if point == "between two commits" else dice.randint(1, 2)
    assert killed_at(servers, topic, note, point, count, dice.randrange(1000)), f"{point} was never reached"
    if dice.random() < 0.5:
        killed_at(servers, topic, note, dice.choice(POINTS), 1, dice.randrange(1000))
    assert not killed_at(servers, topic, note, "", 1, dice.randrange(1000))

    assert committed(servers, topic) == list(range(BATCHES * ROWS)), point
    assert open_transactions(servers, f"to-{topic}") == [], point
