"""Leaders killed, topics made anew, logs cut short under running queries: nothing repeats or goes unsaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics, delete_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.client.fetching.offsets import list_offsets
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.streams import explained
from support.running.waiting import wait_until
from support.spark.feed import Feed, contents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SECONDS_MAX = 200
VICTIM = 1
PLACED = {0: (VICTIM, 2, 0), 1: (2, 0, VICTIM)}
"""The first partition is led by the broker that will die, the second is not."""


def make(servers: str, *names: str, **settings: Any) -> None:
    with Client(servers) as client:
        given = settings or {"assignments": PLACED}
        client.run(create_topics, [a_topic(name, **given) for name in names])


def fill(servers: str, topic: str, count: int, partitions: int = 2) -> None:
    with Client(servers) as client:
        producer = client.producer()
        for n in range(count):
            producer.send(topic, b"%d" % n, partition=n % partitions)
        producer.flush()


def stream(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe=topic, startingOffsets="earliest", **options).load()


def into_files(rows: DataFrame, target: Path) -> Any:
    writer = rows.writeStream.format("parquet").option("path", str(target / "rows"))
    writer = writer.option("checkpointLocation", str(target / "checkpoint"))
    return writer.trigger(processingTime="0.1 seconds").start()


def into_topic(rows: DataFrame, servers: str, topic: str, target: Path) -> Any:
    writer = rows.select("value").writeStream.format("ottla").option("kafka.bootstrap.servers", servers)
    writer = writer.options(topic=topic, checkpointLocation=str(target / "sink"))
    return writer.trigger(processingTime="0.1 seconds").start()


def read_up_to(query: Any, ends: dict[str, dict[str, int]]) -> bool:
    """Whether a query has finished a batch that ends there."""
    if query.exception() is not None:
        raise query.exception()
    progress = query.lastProgress
    if progress is None:
        return False
    at = offsets_of(progress["sources"][0]["endOffset"])
    return all(at.get(topic, {}).get(p, 0) >= n for topic, ps in ends.items() for p, n in ps.items())


def told_of(query: Any) -> str:
    return f"two batches of {query.id}: {query.status}, last {query.lastProgress}"


def offsets_of(offsets: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(offsets) if isinstance(offsets, str) else offsets
    return found or {}


def batches_of(query: Any) -> int:
    return len([p for p in query.recentProgress if p["numInputRows"]])


@contextmanager
def dead(cluster: Cluster, broker: int) -> Iterator[None]:
    """Killed with -9, and started again at the end, in every ISR."""
    cluster.brokers[broker].kill()
    try:
        yield
    finally:
        wait_until(lambda: not cluster.brokers[broker].is_running, "the broker is dead")
        cluster.start_broker(broker)


def whole(servers: str, *topics: str) -> None:
    """Wait until every replica of the topics is in sync."""
    with Client(servers) as client:

        def all_in_sync() -> bool:
            rows = [row for topic in client.run(describe_topics, topics).topics for row in topic.partitions]
            return all(set(row.isr_nodes) == set(row.replica_nodes) for row in rows)

        wait_until(all_in_sync, f"all replicas of {topics} are in sync", SECONDS_MAX)


@pytest.mark.full("a stream outlives the death of a leader")
def test_a_leader_killed_in_mid_stream_costs_no_row(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    make(servers, "flowing", "flown")
    rows = stream(spark, servers, "flowing", maxOffsetsPerTrigger="2000")
    queries = [into_files(rows, tmp_path), into_topic(rows, servers, "flown", tmp_path)]
    try:
        with Feed(servers, "flowing", 2, at_once=4) as feed:
            for query in queries:
                wait_until(lambda q=query: batches_of(q) >= 2, lambda q=query: told_of(q), SECONDS_MAX)
            with dead(cluster, VICTIM):
                before = feed.sent
                wait_until(lambda: feed.sent >= before + 80, "records come again", SECONDS_MAX)
            count = feed.stop()
        ends = {"flowing": {"0": (count + 1) // 2, "1": count // 2}}
        for query in queries:
            wait_until(lambda q=query: read_up_to(q, ends), "all is read", SECONDS_MAX)
    finally:
        for query in queries:
            query.stop()
    whole(servers, "flowing", "flown")

    written = contents(servers, "flowing")
    assert sorted(written.values()) == list(range(count))
    files = spark.read.parquet(str(tmp_path / "rows")).selectExpr(
        "partition", "offset", "cast(cast(value AS string) AS long) AS number"
    )
    found = sorted((row["partition"], row["offset"], row["number"]) for row in files.collect())
    assert found == sorted((*place, number) for place, number in written.items())
    assert set(contents(servers, "flown").values()) == set(range(count))


def in_mid_job(spark: SparkSession, job: Callable[[], Any], disturb: Callable[[], None]) -> Any:
    """Run a job, and disturb it when some of its tasks have ended and others have not.

    The job has this thread: Spark finds sources in Python by the session that is active in its thread.
    """
    tracker = spark.sparkContext.statusTracker()
    is_over, disturbed = Event(), Event()

    def watch() -> None:
        while not is_over.wait(0.005):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(i is not None and 2 < i.numCompletedTasks < i.numTasks - 8 for i in infos):
                disturb()
                disturbed.set()
                return

    watcher = Thread(target=watch)
    watcher.start()
    try:
        return job()
    finally:
        is_over.set()
        watcher.join()
        assert disturbed.is_set(), "the job ended too soon"


@pytest.mark.long
def test_a_leader_killed_in_mid_batch_costs_no_row(spark: SparkSession, cluster: Cluster) -> None:
    servers, count = cluster.bootstrap_servers, 40_000
    make(servers, "standing", "poured")
    fill(servers, "standing", count)
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
    rows = reader.options(subscribe="standing", minPartitions="60").load().select("partition", "offset")

    def kill() -> None:
        cluster.brokers[VICTIM].kill()

    def restart() -> None:
        wait_until(lambda: not cluster.brokers[VICTIM].is_running, "the broker is dead")
        cluster.start_broker(VICTIM)
        whole(servers, "standing", "poured")

    try:
        found = in_mid_job(spark, rows.collect, kill)
    finally:
        restart()
    assert sorted(tuple(row) for row in found) == [(p, n) for p in range(2) for n in range(count // 2)]

    numbers = spark.range(0, count, 1, 60).selectExpr("cast(id AS string) AS value")
    writer = numbers.write.format("ottla").option("kafka.bootstrap.servers", servers)
    saved = writer.option("topic", "poured").mode("append")
    try:
        in_mid_job(spark, saved.save, kill)
    finally:
        restart()
    assert set(contents(servers, "poured").values()) == set(range(count))


def test_a_topic_made_again_under_a_running_query_ends_it_or_is_read_anew(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    settings = {"partitions": 1, "replication_factor": 1}
    make(servers, "renewed", **settings)
    fill(servers, "renewed", 30, 1)
    strict = into_files(stream(spark, servers, "renewed"), tmp_path / "strict")
    lenient = into_files(stream(spark, servers, "renewed", failOnDataLoss="false"), tmp_path / "lenient")
    try:
        for query in (strict, lenient):
            wait_until(lambda q=query: read_up_to(q, {"renewed": {"0": 30}}), "all is read", SECONDS_MAX)
        with Client(servers) as client:
            client.run(delete_topics, ["renewed"])
            wait_until(lambda: client.run(describe_topics, ["renewed"]).topics[0].error_code, "it is gone")
        make(servers, "renewed", **settings)
        fill(servers, "renewed", 50, 1)
        wait_until(lambda: strict.exception() is not None, "the strict query ends", SECONDS_MAX)
        wait_until(lambda: read_up_to(lenient, {"renewed": {"0": 50}}), "all is read anew", SECONDS_MAX)
    finally:
        strict.stop()
        lenient.stop()

    said = explained(strict.exception())
    assert isinstance(said, SparkRefused)
    assert "renewed-0" in str(said)
    assert "read up to" in str(said)
    assert "with failOnDataLoss=false the query goes on without" in str(said)
    assert offsets_in(spark, tmp_path / "strict") == list(range(30))
    assert offsets_in(spark, tmp_path / "lenient") == sorted([*range(30), *range(50)])


def offsets_in(spark: SparkSession, target: Path) -> list[int]:
    rows = spark.read.parquet(str(target / "rows")).select("offset").collect()
    return sorted(row["offset"] for row in rows)


@pytest.mark.long
def test_retention_that_overtakes_a_running_query_loses_only_what_it_took(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = {"log.retention.check.interval.ms": "200", "log.segment.delete.delay.ms": "0"}
    with Cluster(1, sync=False, settings=settings) as cluster:
        servers = cluster.bootstrap_servers
        short = {"segment.bytes": "4000", "retention.bytes": "8000"}
        make(servers, "fleeting", partitions=1, replication_factor=1, configs=short)
        fill(servers, "fleeting", 100, 1)
        # Faster than batches of 50 can follow; in the end the query is there all the same, in one step.
        limit = {"maxOffsetsPerTrigger": "50"}
        query = into_files(stream(spark, servers, "fleeting", failOnDataLoss="false", **limit), tmp_path)
        strict = into_files(stream(spark, servers, "fleeting", **limit), tmp_path / "strict")
        try:
            with Feed(servers, "fleeting", 1, at_once=50) as feed:
                wait_until(lambda: strict.exception() is not None, "the strict query ends", SECONDS_MAX)
                feed.stop()
            with Client(servers) as client:
                partition = TopicPartition("fleeting", 0)
                end = client.run(list_offsets, {partition: LATEST})[partition].offset
            wait_until(lambda: read_up_to(query, {"fleeting": {"0": end}}), "the end is read", SECONDS_MAX)
        finally:
            query.stop()
            strict.stop()

        said = explained(strict.exception())
        assert isinstance(said, SparkRefused)
        assert "of fleeting-0 are no longer in the log, which begins at" in str(said)
        found = offsets_in(spark, tmp_path)
        assert len(found) == len(set(found)), "nothing is repeated"
        assert found[-1] == end - 1
        assert len(found) < end, "something was lost"
        kept = contents(servers, "fleeting")
        assert {offset for _, offset in kept} <= set(found)
