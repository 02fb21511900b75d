"""The pipeline's jobs, each against a cluster of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.cli.tools.reassign.plan import read_plan
from ottla.cli.tools.reassign.reassignment import checked_plan
from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.client.fetching.offsets import list_offsets
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.model.timestamps import LATEST
from ottla.spark.jobs import JOBS, aggregate, archive, audit, elections, hot, plan, replay, validate
from ottla.spark.jobs.balance import balanced, leaders_on
from ottla.spark.jobs.shared.report import Progress
from ottla.spark.read.replicas import SCHEMA
from support.running.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

START_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # The records are years old: retention would take them in mid-test.


def quiet() -> Progress:
    """Of which nobody reads what it tells."""
    return Progress(lambda _: None)


def write(cluster: Cluster, topic: str, values: list[bytes], *, step_ms: int = 1000) -> None:
    """A topic of two partitions, with these values in order and times that go on with them."""
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_topics, [a_topic(topic, partitions=2, replication_factor=3, configs=KEPT)])
        producer = client.producer()
        for n, value in enumerate(values):
            producer.send(
                topic, value, partition=n % 2, key=b"%d" % (n % 3), timestamp_ms=START_MS + n * step_ms
            )
        producer.flush()


def rows_of(spark: SparkSession, cluster: Cluster, topic: str) -> DataFrame:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return reader.options(subscribe=topic, includeHeaders="true").load()


def test_an_archive_holds_each_record_once_and_replays_in_order(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    write(cluster, "events", [b"%d" % n for n in range(100)])
    with Client(servers) as client:
        client.run(create_topics, [a_topic("again", partitions=2, replication_factor=3, configs=KEPT)])
    asked = archive.ArchiveOptions(
        bootstrap_servers=servers,
        topics="events",
        directory=str(tmp_path / "archive"),
        max_offsets_per_batch=30,
    )

    archive.run(spark, asked, quiet())
    write(cluster, "events", [b"%d" % n for n in range(100, 120)])
    report = archive.run(spark, asked, quiet())
    wanted = replay.ReplayOptions(bootstrap_servers=servers, directory=asked.directory, topic="again")
    first = replay.run(spark, wanted, quiet())
    second = replay.run(spark, wanted, quiet())

    (held,) = report.tables
    assert held.rows == [("events", 0, 60, 0, 59, 0), ("events", 1, 60, 0, 59, 0)]
    assert (first.headline, second.headline) == (
        "120 records replayed into again",
        "0 records replayed into again",
    )
    columns = ["partition", "offset", "key", "value", "timestamp"]
    before = rows_of(spark, cluster, "events").select(columns).orderBy("partition", "offset").collect()
    after = rows_of(spark, cluster, "again").select(columns).orderBy("partition", "offset").collect()
    assert after == before


def test_bad_json_goes_to_the_dead_letter_topic_with_its_cause(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    write(cluster, "json", [b'{"id": 1, "name": "x"}', b"{oops", b'{"name": "y"}', b'{"id": "three"}'])
    options = validate.ValidateOptions(
        bootstrap_servers=cluster.bootstrap_servers,
        topic="json",
        schema="id BIGINT NOT NULL, name STRING",
        dead_letter_topic="json-dead",
        valid_topic="json-good",
        checkpoint=str(tmp_path / "checkpoint"),
    )

    report = validate.run(spark, options, quiet())

    assert report.headline == "4 records checked, 1 valid, 3 to json-dead"
    dead = {
        row["value"]: {header["key"]: header["value"] for header in row["headers"]}
        for row in rows_of(spark, cluster, "json-dead").collect()
    }
    assert {value: headers["ottla.cause"] for value, headers in dead.items()} == {
        b"{oops": b"the value is not JSON of the schema",
        b'{"name": "y"}': b"field id is missing",
        b'{"id": "three"}': b"the value is not JSON of the schema",
    }
    assert dead[b"{oops"]["ottla.origin"] == b"json-1-0"
    assert [row["value"] for row in rows_of(spark, cluster, "json-good").collect()] == [
        b'{"id": 1, "name": "x"}'
    ]


def test_windows_that_are_over_are_counted_and_summed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    values = [json.dumps({"colour": "red" if n % 4 else "blue", "price": 2}).encode() for n in range(60)]
    values[3] = b'{"colour": "red", "price": "two"}'
    write(cluster, "prices", [*values, *[b"{}"] * 2], step_ms=60_000)
    options = aggregate.AggregateOptions(
        bootstrap_servers=cluster.bootstrap_servers,
        topic="prices",
        to_topic="prices-by-hour",
        checkpoint=str(tmp_path / "checkpoint"),
        window="1 day",
        watermark="1 minute",
        group_by="colour",
        sum_of="price",
    )

    aggregate.run(spark, options, quiet())
    write(cluster, "prices", [b'{"colour": "late"}'] * 4, step_ms=100_000_000)
    aggregate.run(spark, options, quiet())

    found = [json.loads(row["value"]) for row in rows_of(spark, cluster, "prices-by-hour").collect()]
    sums = {
        row.get("group"): (row["count"], row.get("sum"))
        for row in found
        if row.get("group") in ("red", "blue")
    }
    assert sums == {"red": (45, 88.0), "blue": (15, 30.0)}, "what is no number is counted and adds nothing"


def test_the_bytes_of_partitions_and_keys_are_told_and_become_weights(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_topics, [a_topic("warm", partitions=2, replication_factor=1, configs=KEPT)])
        producer = client.producer()
        for n in range(10):
            time_ms = START_MS + n * 60_000
            producer.send("warm", b"x" * 99, key=b"k", partition=0, timestamp_ms=time_ms)
        producer.send("warm", b"y" * 98, key=b"\xff\xfe", partition=1, timestamp_ms=START_MS)
        producer.send("warm", b"z" * 100, partition=1, timestamp_ms=START_MS)
        producer.flush()
    file = tmp_path / "weights.json"
    options = hot.HotOptions(
        bootstrap_servers=cluster.bootstrap_servers, topics="warm", window="1 day", file=str(file)
    )

    report = hot.run(spark, options, quiet())

    partitions, keys = report.tables
    assert report.headline == "1200 bytes in 2 partitions"
    assert [row[:5] for row in partitions.rows] == [("warm", 0, 10, 1000, "83%"), ("warm", 1, 2, 200, "17%")]
    assert keys.rows == [("warm", 0, "k", 10, 1000, "83%"), ("warm", 1, "0xfffe", 1, 100, "8%")]
    carried = plan.read_weights(str(file))
    assert carried == {TopicPartition("warm", 0): 1000, TopicPartition("warm", 1): 200}


def test_replicas_that_are_equal_pass_the_audit(spark: SparkSession, cluster: Cluster) -> None:
    write(cluster, "audited", [b"%d" % n for n in range(50)])
    options = audit.AuditOptions(bootstrap_servers=cluster.bootstrap_servers, topics="audited")

    report = audit.run(spark, options, quiet())

    assert report.is_well, list(report.lines())
    assert report.headline.startswith("6 replicas, ")
    assert report.headline.endswith("all equal")


def test_a_batch_that_differs_or_is_missing_fails_the_audit(spark: SparkSession) -> None:
    def a_batch(broker: int, base_offset: int, crc: int) -> tuple[object, ...]:
        return ("t", 0, broker, base_offset, base_offset + 9, 1, crc, 100, 40, 0)

    same = [a_batch(broker, 0, 5) for broker in range(3)]
    other = [a_batch(0, 10, 6), a_batch(1, 10, 7), a_batch(2, 10, 6)]
    absent = [a_batch(0, 20, 8), a_batch(2, 20, 8)]
    above = [a_batch(1, 40, 9)]
    batches = spark.createDataFrame([*same, *other, *absent, *above], SCHEMA)

    found = audit.find_differences(batches).collect()

    assert [(row["base_offset"], row["brokers"], row["what"]) for row in found] == [
        (10, "0,1,2", "replicas differ"),
        (20, "0,2", "not on all replicas"),
    ]


def test_a_replica_that_lost_its_end_or_its_beginning_is_found(spark: SparkSession) -> None:
    def a_batch(broker: int, base_offset: int, log_start: int = 0) -> tuple[object, ...]:
        return (
            "t",
            0,
            broker,
            base_offset,
            base_offset + 9 if base_offset >= 0 else -1,
            1,
            5,
            100,
            30,
            log_start,
        )

    whole = [a_batch(0, offset) for offset in (0, 10, 20, -1)]
    without_end = [a_batch(1, offset) for offset in (0, 10, -1)]
    later = [a_batch(2, offset, log_start=10) for offset in (10, 20, -1)]
    batches = spark.createDataFrame([*whole, *without_end, *later], SCHEMA)

    tables, differing = audit.compare(batches)

    assert differing == 1
    assert [table.rows for table in tables] == [
        [("t", 0, 20, "0,2", "not on all replicas")],
        [("t", 0, 2, 10)],
    ]


def test_an_audit_of_a_topic_that_is_not_there_is_not_well(spark: SparkSession, cluster: Cluster) -> None:
    options = audit.AuditOptions(bootstrap_servers=cluster.bootstrap_servers, topics="no-such-topic")

    report = audit.run(spark, options, quiet())

    assert not report.is_well
    assert [table.rows for table in report.tables] == [[("no-such-topic",)]]


def decisions(cluster: Cluster) -> int:
    """How many are written down."""
    with Client(cluster.bootstrap_servers) as client:
        if client.run(describe_topics, [DECISIONS_TOPIC]).topics[0].error_code:
            return 0
        partition = TopicPartition(DECISIONS_TOPIC, 0)
        return client.run(list_offsets, {partition: LATEST})[partition].offset


def test_elections_are_counted_and_drawn(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    write(cluster, "elected", [b"x"])
    wait_until(lambda: decisions(cluster) >= 2, "the controller has told what it decided", 60)
    picture = tmp_path / "elections.html"
    options = elections.ElectionsOptions(bootstrap_servers=cluster.bootstrap_servers, picture=str(picture))

    report = elections.run(spark, options, quiet())

    rules = {row[0]: row[1] for row in report.tables[0].rows}
    assert rules["new partition"] >= 2  # type: ignore[operator]
    assert "<polyline" in picture.read_text(encoding="utf-8")


def test_a_plan_is_json_that_the_reassign_tool_takes(cluster: Cluster, tmp_path: Path) -> None:
    with Client(cluster.bootstrap_servers) as client:
        lopsided = dict.fromkeys(range(12), (0, 1))
        client.run(create_topics, [a_topic("lopsided", assignments=lopsided)])
    file = tmp_path / "plan.json"
    options = plan.PlanOptions(bootstrap_servers=cluster.bootstrap_servers, file=str(file))

    report = plan.run(options, quiet())

    asked = read_plan(file)
    assert asked
    assert report.headline.startswith(f"{len(asked)} partitions change, ")
    now, then = ([int(str(row[column])) for row in report.tables[0].rows] for column in (3, 4))
    assert sum(then) == sum(now)
    assert spread(then) <= spread(now)
    with Client(cluster.bootstrap_servers) as client:
        measured = plan.measure(client)
        brokers, before = measured.brokers, measured.before
        assert checked_plan(client, asked).keys() >= asked.keys()
    evened = balanced(brokers, before, dict.fromkeys(before, 0), moves_max=1000)
    assert spread([leaders_on(broker, evened) for broker in brokers]) <= 1


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def test_every_job_of_the_list_has_a_command() -> None:
    from ottla.cli.pipeline.run import app

    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}

    assert commands == set(JOBS)
