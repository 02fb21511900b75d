"""The pipeline shown: sample orders flow into a topic, and a streaming job answers while they come.

The job reads exactly the orders of this run, however many were written before, and at the end both sides have
counted them.
"""

import json
import random
import threading
import time

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.report import Report, Table, Tell
from ottla.spark.jobs.shared.streams import explained, spark_said
from ottla.spark.read.offsets import to_json

TOPIC = "demo-orders"
PARTITIONS = 3
COUNTRIES = ("Austria", "Czechia", "Italy", "Slovenia")
ORDERS_PER_BURST = 20
BURST_S = 0.1
BATCHES = 3
LIMIT_S = 300.0
_LOOK_S = 0.1
_VIEW = "ottla_demo"


class SampleOrders:
    """Orders flow from the start of the ``with`` until ``stop``, written by a thread of their own."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._is_enough = threading.Event()
        self._thread = threading.Thread(target=self._write, name="sample-orders", daemon=True)
        self._error: ClientError | None = None
        self._sent = 0
        self.starting_offsets = ""

    def start(self) -> None:
        """Make the topic if need be, note where this run begins, and let orders flow."""
        with Client(self._servers) as client:
            brokers = len(client.run(describe_topics, []).brokers)
            wanted = a_topic(TOPIC, partitions=PARTITIONS, replication_factor=min(3, brokers))
            client.run(create_topics, [wanted])  # That it exists already is as good.
            partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
            ends = client.run(list_offsets, dict.fromkeys(partitions, LATEST))
        self.starting_offsets = to_json({partition: row.offset for partition, row in ends.items()})
        self._thread.start()

    def stop(self) -> int:
        """No more orders; how many the cluster has acknowledged."""
        self._is_enough.set()
        self._thread.join()
        if self._error is not None:
            raise SparkRefused(f"the sample orders could not be written: {self._error}", "see `ottla status`")
        return self._sent

    def _write(self) -> None:
        chance = random.Random(8)
        try:
            with Client(self._servers) as client:
                producer = client.producer()
                while not self._is_enough.wait(BURST_S):
                    for _ in range(ORDERS_PER_BURST):
                        country, price = chance.choice(COUNTRIES), chance.randint(100, 9_999) / 100
                        order = json.dumps({"country": country, "price": price})
                        producer.send(TOPIC, order.encode(), key=country.encode())
                    producer.flush()
                    self._sent += ORDERS_PER_BURST
        except ClientError as error:
            self._error = error


def answer(spark: SparkSession, servers: str, orders: SampleOrders, tell: Tell) -> Report:
    """Count the orders and sum their prices by country, batch after batch, while they flow."""
    began = time.monotonic()
    query = _by_country(spark, servers, orders.starting_offsets).start()
    try:
        _follow(query, tell)
        sent = orders.stop()
        query.processAllAvailable()
    except StreamingQueryException as error:
        ours = explained(error)
        if isinstance(ours, SparkRefused):
            raise ours from error
        cause = spark_said(error)
        raise SparkRefused(f"Spark ended the query: {cause}", "try `ottla pipeline demo` again") from error
    finally:
        query.stop()
    rows = spark.table(_VIEW).orderBy("country").collect()
    seen = sum(row["orders"] for row in rows)
    table = Table(
        f"orders by country, from topic {TOPIC}",
        ("country", "orders", "revenue"),
        [(row["country"], row["orders"], f"{row['revenue']:.2f}") for row in rows],
    )
    headline = (
        f"{seen} of {sent} orders were counted while they flowed in, in {time.monotonic() - began:.1f} s"
    )
    return Report(headline, [table], is_well=seen == sent)


def _by_country(spark: SparkSession, servers: str, starting_offsets: str) -> DataStreamWriter:
    orders: DataFrame = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", starting_offsets)
        .load()
    )
    order = F.from_json(F.col("value").cast("string"), "country string, price double")
    by_country = (
        orders.select(order.alias("order"))
        .groupBy("order.country")
        .agg(F.count("*").alias("orders"), F.sum("order.price").alias("revenue"))
    )
    writer = by_country.writeStream.format("memory").queryName(_VIEW).outputMode("complete")
    return writer.trigger(processingTime="1 second")


def _follow(query: StreamingQuery, tell: Tell) -> None:
    """Tell of the first batches as they end."""
    give_up = time.monotonic() + LIMIT_S
    told = -1
    while told < BATCHES - 1:
        if time.monotonic() > give_up:
            raise SparkRefused(
                f"Spark has not finished {BATCHES} batches in {LIMIT_S:.0f} s", "see what the machine does"
            )
        for progress in query.recentProgress:
            if progress["batchId"] > told and progress["numInputRows"]:
                told = progress["batchId"]
                tell(f"batch {told}: {progress['numInputRows']} orders")
        if not query.isActive:
            query.awaitTermination()
            return
        time.sleep(_LOOK_S)
