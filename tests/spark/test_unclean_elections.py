"""The cluster loses what a stream has read: an unclean election, played with real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.client.admin.groups import alter_group_offsets
from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.jobs import archive, losses
from ottla.spark.jobs.shared.report import Progress
from ottla.spark.options.read import read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.offsets import from_dict
from ottla.spark.read.receipts import receipts_of
from ottla.spark.read.stream import StreamReader
from support.processes.deaths import die
from support.running.waiting import wait_until
from support.spark.lakes import copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.full("kills brokers of a cluster of its own"),
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

OLD, NEW = 1, 2
BOTH_HAVE, ONE_HAS, LATER = 100, 100, 300
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def lossy() -> Iterator[Cluster]:
    with Cluster(3, sync=False, settings={"auto.leader.rebalance.enable": "false"}) as cluster:
        yield cluster


def a_reader(cluster: Cluster, **options: str) -> StreamReader:
    servers = cluster.bootstrap_servers
    given = {"kafka.bootstrap.servers": servers, "subscribe": "orders", "startingOffsets": "earliest"}
    return StreamReader(read_options(given | options, is_stream=True), read_schema(False))


def send(cluster: Cluster, count: int) -> None:
    with Client(cluster.bootstrap_servers) as client:
        producer = client.producer()
        for n in range(count):
            producer.send("orders", b"%d" % n, partition=0)
        producer.flush()


def state(cluster: Cluster) -> tuple[int, list[int]]:
    with Client(cluster.bootstrap_servers) as client:
        (topic,) = client.run(describe_topics, ["orders"]).topics
        return topic.partitions[0].leader_id, sorted(topic.partitions[0].isr_nodes)


def receipts(cluster: Cluster) -> int:
    with Client(cluster.bootstrap_servers) as client:
        return len(receipts_of(client, {ORDERS}))


def test_a_stream_tells_of_an_unclean_election_however_far_the_log_has_grown_since(
    lossy: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    unclean = {"unclean.leader.election.enable": "true"}
    with Client(lossy.bootstrap_servers) as client:
        client.run(create_topics, [a_topic("orders", assignments={0: (OLD, NEW)}, configs=unclean)])
    strict, lenient = a_reader(lossy), a_reader(lossy, failOnDataLoss="false")
    send(lossy, BOTH_HAVE)
    die(lossy, NEW)
    wait_until(lambda: state(lossy) == (OLD, [OLD]), "the old leader is alone in sync", 60)
    send(lossy, ONE_HAS)
    at = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())
    assert from_dict(at) == {ORDERS: BOTH_HAVE + ONE_HAS}
    servers = lossy.bootstrap_servers
    kept = archive.ArchiveOptions(bootstrap_servers=servers, topics="orders", directory=str(tmp_path))
    assert copy(kept) == BOTH_HAVE + ONE_HAS

    die(lossy, OLD)
    lossy.start_broker(NEW)
    wait_until(lambda: state(lossy)[0] == NEW, "the lagging replica leads", 60)
    send(lossy, LATER)
    wait_until(lambda: receipts(lossy), "the receipt is written", 60)

    with pytest.raises(DataLoss) as told:
        strict.latestOffset(at, ReadAllAvailable())
    assert f"offsets [{BOTH_HAVE}, {BOTH_HAVE + ONE_HAS}) of orders-0 were read" in str(told.value)
    assert f"broker {NEW} was elected uncleanly" in str(told.value)
    assert "receipt: __ottla_decisions offset" in str(told.value)
    end = lenient.latestOffset(at, ReadAllAvailable())
    found = [
        row["offset"]
        for piece in lenient.partitions(at, end)
        for batch in lenient.read(piece)
        for row in batch.to_pylist()
    ]
    assert found == list(range(BOTH_HAVE, BOTH_HAVE + LATER)), "what is new, and nothing else"

    with pytest.raises(DataLoss, match="the log was cut at 100"):
        copy(kept)
    lossy.start_broker(OLD)
    wait_until(lambda: state(lossy)[1] == [OLD, NEW], "the old leader is back, and has cut its log", 60)
    with Client(servers) as client:
        client.run(alter_group_offsets, "readers", {ORDERS: BOTH_HAVE + ONE_HAS})
    wanted = losses.LossesOptions(bootstrap_servers=servers, directory=str(tmp_path), repair=True)
    first, second = (losses.run(spark, wanted, Progress(lambda _: None)) for _ in range(2))
    assert not first.is_well
    gone, groups = first.tables
    ((partition, _, start, _, count),) = gone.rows
    assert (partition, start, count) == (ORDERS, BOTH_HAVE, ONE_HAS)
    assert groups.rows == [("readers", ORDERS, BOTH_HAVE, BOTH_HAVE + ONE_HAS, "perhaps")]
    assert first.headline == second.headline
    back = spark.read.format("ottla").options(subscribe="orders", includeHeaders="true")
    rows = back.option("kafka.bootstrap.servers", servers).load().where("headers IS NOT NULL").collect()
    assert [
        (row["value"], row["headers"][0]["value"]) for row in sorted(rows, key=lambda r: r["offset"])
    ] == [(b"%d" % n, b"orders-0-%d" % (BOTH_HAVE + n)) for n in range(ONE_HAS)], (
        "written back once, in order"
    )
