"""``format("ottla")`` against a cluster of ours: what was written is read, once; refusals say why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.groups import list_group_offsets
from ottla.client.admin.topics import a_topic, create_partitions, create_topics, delete_records
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.spark.options.read import read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.batch import read_range
from ottla.spark.read.ranges import OffsetRange
from support.processes.commands import run_here
from support.running.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def a_filled_topic(cluster: Cluster, name: str, *, partitions: int = 3, per_codec: int = 60) -> int:
    """A topic with records of every codec; how many."""
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_topics, [a_topic(name, partitions=partitions, replication_factor=2)])
        for codec in CODECS:
            producer = client.producer(compression_type=codec)
            for n in range(per_codec):
                headers = (("codec", codec.encode()),) if n % 2 else ()
                value = None if n % 7 == 0 else f"{codec} {n}".encode()
                producer.send(name, value, key=b"key %d" % n, headers=headers)
            producer.flush()
    return per_codec * len(CODECS)


def read(spark: SparkSession, cluster: Cluster, **options: str) -> DataFrame:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return reader.options(**options).load()


def stream(spark: SparkSession, cluster: Cluster, **options: str) -> DataFrame:
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return reader.option("startingOffsets", "earliest").options(**options).load()


def run_stream(rows: DataFrame, target: Path) -> Any:
    """Everything that is there now, to Parquet; the query when it has ended."""
    query = (
        rows.writeStream.format("parquet")
        .option("path", str(target / "rows"))
        .option("checkpointLocation", str(target / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def places(rows: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows.select("partition", "offset").collect())


def test_a_batch_holds_every_record_with_its_columns(spark: SparkSession, cluster: Cluster) -> None:
    count = a_filled_topic(cluster, "batch")

    rows = read(spark, cluster, subscribe="batch", includeHeaders="true").collect()

    assert len(rows) == count
    assert len({(row["partition"], row["offset"]) for row in rows}) == count
    for row in rows:
        number = int(row["key"].removeprefix(b"key "))
        assert (row["value"] is None) == (number % 7 == 0)
        if number % 2:
            (header,) = row["headers"]
            assert header["key"] == "codec"
            assert row["value"] is None or row["value"].startswith(header["value"] + b" ")
        else:
            assert row["headers"] is None


def test_offsets_and_splits_are_exact_and_a_schema_is_a_projection(
    spark: SparkSession, cluster: Cluster
) -> None:
    a_filled_topic(cluster, "exact", partitions=2)
    bounds = {
        "startingOffsets": json.dumps({"exact": {"0": 5, "1": -2}}),
        "endingOffsets": json.dumps({"exact": {"0": 35, "1": 7}}),
    }
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", cluster.bootstrap_servers)

    rows = (
        reader.options(subscribe="exact", minPartitions="5", **bounds)
        .schema("offset LONG, partition INT")
        .load()
    )

    assert rows.columns == ["offset", "partition"]
    assert rows.rdd.getNumPartitions() >= 5
    assert places(rows) == [(0, n) for n in range(5, 35)] + [(1, n) for n in range(7)]


def test_a_stream_goes_on_where_it_was_and_finds_new_partitions(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    count = a_filled_topic(cluster, "growing", partitions=2)
    limits = {"subscribe": "growing", "maxOffsetsPerTrigger": "120", "offsetCommitGroup": "watchers"}

    first = run_stream(stream(spark, cluster, **limits), tmp_path)
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_partitions, {"growing": 3})
        producer = client.producer()
        producer.wait(producer.send("growing", b"first of the new", partition=2))
        producer.wait(producer.send("growing", b"one more", partition=0))
    run_stream(stream(spark, cluster, **limits), tmp_path)

    assert len([p for p in first.recentProgress if p["numInputRows"]]) >= 3
    found = places(spark.read.parquet(str(tmp_path / "rows")))
    assert len(found) == len(set(found)) == count + 2
    assert (2, 0) in found
    with Client(cluster.bootstrap_servers) as client:
        committed = client.run(list_group_offsets, "watchers")
    ends = {p.partition: row.committed_offset for p, row in committed.items()}
    assert ends == {n: max(offset for p, offset in found if p == n) + 1 for n in range(3)}


def test_lag_tools_see_a_query_that_commits_and_no_other(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    count = a_filled_topic(cluster, "watched", partitions=1)
    servers = cluster.bootstrap_servers
    options = {"subscribe": "watched", "kafka.group.id": "silent", "groupIdPrefix": "quiet-"}

    run_stream(stream(spark, cluster, **options, offsetCommitGroup="seen"), tmp_path)
    with Client(servers) as client:
        producer = client.producer()
        for _ in range(7):
            producer.send("watched", b"later")
        producer.flush()

    described = run_here("consumer-groups", "--bootstrap-server", servers, "--describe", "--group", "seen")
    (row,) = [line.split() for line in described.lines if line.startswith("seen ")]
    assert row[:6] == ["seen", "watched", "0", str(count), str(count + 7), "7"]
    listed = run_here("consumer-groups", "--bootstrap-server", servers, "--list")
    assert "seen" in listed.lines
    assert not [name for name in listed.lines if name.startswith(("silent", "quiet-"))]


def test_what_a_sink_writes_is_read_back(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_topics, [a_topic("sink", partitions=3, replication_factor=2)])
    target = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "topic": "sink",
        "kafka.compression.type": "lz4",
    }
    rows = spark.range(1000).selectExpr("cast(id AS string) AS key", "repeat('x', 50) AS value")

    rows.write.format("ottla").options(**target).mode("append").save()
    copy = {**target, "topic": "copy"}
    query = (
        stream(spark, cluster, subscribe="sink")
        .select("key", "value")
        .writeStream.format("ottla")
        .options(**copy)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    for topic in ("sink", "copy"):
        keys = [int(row["key"]) for row in read(spark, cluster, subscribe=topic).select("key").collect()]
        assert sorted(keys) == list(range(1000)), topic


def test_a_leader_killed_in_mid_read_costs_no_row(cluster: Cluster) -> None:
    count = a_filled_topic(cluster, "failover", partitions=1, per_codec=200)
    options = read_options(
        {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "subscribe": "failover",
            "kafka.max.partition.fetch.bytes": "500",
        },
        is_stream=False,
    )
    partition = TopicPartition("failover", 0)
    rows = read_range(options, read_schema(False), OffsetRange(partition, 0, count))
    offsets = next(rows).column("offset").to_pylist()
    with Client(cluster.bootstrap_servers) as client:
        producer = client.producer()
        producer.wait(producer.send("failover", b"last"))
        leader = client.engine.metadata.leader_of(partition)
    assert leader is not None

    cluster.brokers[leader].kill()
    try:
        for batch in rows:
            offsets += batch.column("offset").to_pylist()
    finally:
        wait_until(lambda: not cluster.brokers[leader].is_running, "the broker is dead")
        cluster.start_broker(leader)

    assert offsets == list(range(count))


def test_lost_offsets_are_named_or_skipped(cluster: Cluster) -> None:
    count = a_filled_topic(cluster, "retention", partitions=1)
    partition = TopicPartition("retention", 0)
    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_records, {partition: 10})
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "retention"}
    wanted = OffsetRange(partition, 3, count)

    from ottla.spark.errors import DataLoss

    with pytest.raises(DataLoss, match=r"offsets \[3, 10\) of retention-0 are no longer in the log"):
        list(read_range(read_options(given, is_stream=False), read_schema(False), wanted))
    lenient = read_options({**given, "failOnDataLoss": "false"}, is_stream=False)
    batches = list(read_range(lenient, read_schema(False), wanted))

    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == list(
        range(10, count)
    )
