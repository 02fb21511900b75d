"""Spark writes exactly once, whoever is killed when, read back by a reader of committed records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from support.running.waiting import wait_until
from support.spark.dying_sink import (
    BATCHES,
    POINTS,
    ROWS,
    committed,
    killed_at,
    open_transactions,
    survives,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PARTITIONS = 3
FIRST = ("a task has flushed", "between two commits")


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> Iterator[str]:
    return cluster.bootstrap_servers


def make(servers: str, *topics: str) -> None:
    with Client(servers) as client:
        rows = client.run(
            create_topics, [a_topic(name, partitions=PARTITIONS, replication_factor=1) for name in topics]
        )
        assert [row.error_code for row in rows] == [0] * len(topics)


def fill(servers: str, topic: str, start: int, count: int) -> None:
    with Client(servers) as client:
        producer = client.producer()
        for n in range(start, start + count):
            producer.send(topic, b"%d" % n, partition=n % PARTITIONS)
        producer.flush()


def copy(spark: SparkSession, servers: str, source: str, target: str, place: Path) -> None:
    """All that is new, in batches of 40, through a shuffle."""
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="40")
        .load()
        .select("value")
        .repartition(4)
    )
    writer = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", servers)
    options = {"topic": target, "transactionalIdPrefix": f"to-{target}", "checkpointLocation": str(place)}
    writer.options(**options).trigger(availableNow=True).start().awaitTermination()


def numbers(spark: SparkSession, start: int, count: int) -> DataFrame:
    return spark.range(start, start + count, 1, 4).selectExpr("cast(id AS string) AS value")


def save(rows: DataFrame, servers: str, topic: str, **options: Any) -> None:
    writer = rows.write.format("ottla").option("kafka.bootstrap.servers", servers)
    writer.options(topic=topic, transactionalIdPrefix=f"to-{topic}", **options).mode("append").save()


IN_FULL = [
    pytest.param(point, marks=pytest.mark.full("kills a process at every point of a batch"))
    for point in POINTS
    if point not in FIRST
]


@pytest.mark.parametrize("point", [*FIRST, *IN_FULL])
def test_a_query_killed_at_any_point_writes_each_row_once(
    servers: str, tmp_path: Path, point: str, full_form: bool, long_form: bool
) -> None:
    lives = 20 if long_form else 2 if full_form else 1
    for seed in range(lives):
        topic = f"killed-{POINTS.index(point)}-{seed}"
        make(servers, topic)
        survives(servers, topic, tmp_path / "done", point, Random(f"{point} {seed}"))


def aborted_by_time_out(servers: str) -> None:
    """Wait until a transaction with that time-out has been aborted."""
    with Client(servers) as client:
        producer = client.producer(transactional_id="witness", transaction_timeout_ms=5_000)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("witness", b"0", partition=0)
        producer.flush()
        wait_until(lambda: open_transactions(servers, "witness") == [], "the time-out is over", 60)


@pytest.mark.full("waits for transactions to time out, in clusters of its own")
@pytest.mark.parametrize("keeps_prepared", [True, False])
def test_a_time_out_undoes_a_decided_batch_never_or_not_in_silence(
    tmp_path: Path, keeps_prepared: bool
) -> None:
    settings = {
        "transaction.two.phase.commit.enable": str(keeps_prepared).lower(),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    note, hasty = tmp_path / "done", {"kafka.transaction.timeout.ms": "5000"}
    with Cluster(1, sync=False, settings=settings) as cluster:
        servers = cluster.bootstrap_servers
        make(servers, "slow", "witness")
        note.write_text("0")
        assert killed_at(servers, "slow", note, "after decided", 1, 7, **hasty)
        aborted_by_time_out(servers)
        refused = killed_at(servers, "slow", note, "", 1, 8)

        if keeps_prepared:
            assert not refused
            assert committed(servers, "slow") == list(range(BATCHES * ROWS))
        else:
            told = (tmp_path / "done.told").read_text()
            assert "data loss: 12 of 12 records of batch 0 of query were aborted after the batch" in told
            assert killed_at(servers, "slow", note, "", 1, 9), "it is told at every start"
            assert not killed_at(servers, "slow", note, "", 1, 10, failOnDataLoss="false")
            assert committed(servers, "slow") == list(range(ROWS, BATCHES * ROWS))
        assert open_transactions(servers, "to-slow") == []


def test_a_stream_is_copied_exactly_once_and_repeated_batches_are_skipped(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    make(servers, "once-source", "once-copied")
    fill(servers, "once-source", 0, 100)
    copy(spark, servers, "once-source", "once-copied", tmp_path)
    commits = tmp_path / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)  # As when the driver died before Spark noted the batch.

    fill(servers, "once-source", 100, 30)
    copy(spark, servers, "once-source", "once-copied", tmp_path)

    assert committed(servers, "once-copied") == list(range(130))
    assert open_transactions(servers, "to-") == []


def test_batch_writes_and_versions_of_an_application_count_once(spark: SparkSession, servers: str) -> None:
    make(servers, "once-versions")

    save(numbers(spark, 0, 20), servers, "once-versions")
    for version in (1, 1, 2):
        save(numbers(spark, 20 * version, 20), servers, "once-versions", txnAppId="app", txnVersion=version)

    assert committed(servers, "once-versions") == list(range(60))
    assert open_transactions(servers, "to-") == []


@pytest.mark.full("Spark fails a job, and begins another")
def test_a_task_that_fails_leaves_no_row_and_no_open_transaction(spark: SparkSession, servers: str) -> None:
    make(servers, "broken")
    rows = numbers(spark, 0, 20).selectExpr(
        "CASE WHEN value = '19' THEN raise_error('boom') ELSE value END AS value"
    )

    with pytest.raises(Exception, match="boom"):
        save(rows, servers, "broken")
    save(numbers(spark, 0, 5), servers, "broken")

    assert committed(servers, "broken") == list(range(5))
    assert open_transactions(servers, "to-") == []
