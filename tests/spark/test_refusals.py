"""What cannot be done is refused by the driver, with what was given, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics, delete_records
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.streams import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

NOBODY = "127.0.0.1:9"
HASTY = {"kafka.default.api.timeout.ms": "2000", "kafka.request.timeout.ms": "1000"}


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    with Client(cluster.bootstrap_servers) as client:
        small = {"max.message.bytes": "2000"}
        topics = [
            a_topic("refusing", partitions=2, replication_factor=1),
            a_topic("narrow", partitions=1, replication_factor=1, configs=small),
        ]
        client.run(create_topics, topics)
    return cluster.bootstrap_servers


def refusal(action: Callable[[], Any]) -> str:
    """What the driver says about it, in one sentence; the sentence must be whole in Spark's own error."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        action()
    ours = explained(raised.value)
    assert isinstance(ours, SparkRefused), raised.value
    assert "PythonException" not in str(raised.value).splitlines()[0], (
        "a worker's stack, not the driver's word"
    )
    return str(ours)


def read(spark: SparkSession, servers: str, **options: str) -> DataFrame:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
    return reader.options(**options).load()


def save(rows: DataFrame, servers: str, **options: str) -> None:
    writer = rows.write.format("ottla").option("kafka.bootstrap.servers", servers)
    writer.options(**options).mode("append").save()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"subscribe": "no-such-topic"},
            "option subscribe='no-such-topic': the cluster has no such topic; create it, or correct the name",
        ),
        (
            {"assign": '{"refusing":[7]}'},
            "option assign='refusing-7': the topic has partitions [0, 1]; choose from these",
        ),
        (
            {"subscribe": "refusing", "startingOffsets": '{"refusing":{"0":"x"}}'},
            'option startingOffsets=\'{"refusing":{"0":"x"}}\': Expected `int`, got `str`',
        ),
        (
            {"subscribe": "refusing", "startingOffsets": '{"refusing":{"0":1}}'},
            "it leaves out refusing-1; name every partition; -2 is earliest, -1 latest",
        ),
        (
            {"subscribe": "refusing", "startingOffsets": '{"refusing":{"0":-2,"1":77777}}'},
            "option startingOffsets: refusing-1 ends at ",
        ),
        (
            {"subscribe": "refusing", "colour": "red"},
            "option colour: there is no such option; there are subscribe, ",
        ),
        (
            {"subscribe": "refusing", "kafka.auto.offset.reset": "earliest"},
            "say where to begin with startingOffsets",
        ),
    ],
)
def test_a_read_is_refused_with_option_value_and_remedy(
    spark: SparkSession, servers: str, options: dict[str, str], said: str
) -> None:
    assert said in refusal(lambda: read(spark, servers, **options).count())


def test_offsets_that_retention_took_are_named_by_the_driver(spark: SparkSession, servers: str) -> None:
    with Client(servers) as client:
        client.run(create_topics, [a_topic("shortened", partitions=1, replication_factor=1)])
        producer = client.producer()
        for _ in range(9):
            producer.send("shortened", b"x")
        producer.flush()
        client.run(delete_records, {TopicPartition("shortened", 0): 5})
    asked = {"subscribe": "shortened", "startingOffsets": '{"shortened":{"0":2}}'}

    said = refusal(lambda: read(spark, servers, **asked).count())

    assert "option startingOffsets: offsets [2, 5) of shortened-0 are no longer in the log" in said
    assert read(spark, servers, failOnDataLoss="false", **asked).count() == 4


def test_a_cluster_that_is_gone_is_named(spark: SparkSession) -> None:
    rows = spark.range(1).selectExpr("'x' AS value")

    reading = refusal(lambda: read(spark, NOBODY, subscribe="any", **HASTY).count())
    writing = refusal(lambda: save(rows, NOBODY, topic="any", **HASTY))

    for said in (reading, writing):
        assert said.startswith(f"option kafka.bootstrap.servers='{NOBODY}': ")
        assert said.endswith("see that the brokers run and are reachable from the driver")


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            ["cast(id AS string) AS key"],
            {"topic": "refusing"},
            "there is no column 'value' among key; name the column that is to be written",
        ),
        (["'x' AS value"], {}, "neither option 'topic' nor a column 'topic' says where to write"),
        (["id AS value"], {"topic": "refusing"}, "column 'value' has the type bigint; a sink takes binary"),
        (
            ["'x' AS value", "if(id = 3, null, 'refusing') AS topic"],
            {},
            "a row has null in column 'topic'; fill it, filter such rows out, or give option 'topic'",
        ),
        pytest.param(
            ["'x' AS value", "9 AS partition"],
            {"topic": "refusing"},
            "a row names partition 9 of topic refusing, which has 2; correct column 'partition'",
            marks=pytest.mark.long,
        ),
        pytest.param(
            ["repeat('x', 3000) AS value"],
            {"topic": "refusing", "kafka.max.request.size": "2000", "kafka.batch.size": "1000"},
            "is larger than kafka.max.request.size=2000; raise it and the topic's max.message.bytes",
            marks=pytest.mark.long,
        ),
        (
            ["repeat('x', 3000) AS value"],
            {"topic": "narrow"},
            "raise the topic's max.message.bytes, or lower option kafka.batch.size=524288",
        ),
        pytest.param(
            ["repeat('x', 3000) AS value"],
            {"topic": "narrow", "kafka.batch.size": "100"},
            "with 1 records: ",
            marks=pytest.mark.long,
        ),
        (
            ["'x' AS value"],
            {"topic": "refusing", "kafka.transactional.id": "t"},
            "every task has one of its own: say transactionalIdPrefix",
        ),
    ],
)
def test_a_write_is_refused_by_the_driver_with_its_reason(
    spark: SparkSession, servers: str, columns: list[str], options: dict[str, str], said: str
) -> None:
    rows = spark.range(0, 10, 1, 2).selectExpr(*columns)

    assert said in refusal(lambda: save(rows, servers, **options))


@pytest.mark.long
def test_a_stream_s_row_that_cannot_be_written_ends_it_with_the_reason(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    save(spark.range(5).selectExpr("repeat('x', 1000) AS value"), servers, topic="refusing")
    stream = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .options(subscribe="refusing", startingOffsets="earliest")
        .load()
    )
    query = (
        stream.selectExpr("repeat(cast(value AS string), 3) AS value")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .options(topic="narrow", checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
    )

    assert "lower option kafka.batch.size" in refusal(lambda: query.start().awaitTermination())
