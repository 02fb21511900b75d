"""audit: the replicas of every partition, read from every broker and compared batch by batch.

Below the high watermark all replicas must hold the same batches: offsets, leader epoch and checksum. Brokers
serve consumers from followers (KIP-392), so each replica can be asked directly. Compacted topics are left
out: each broker compacts when it likes, and rewrites batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking import Client
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell
from ottla.spark.kafka_settings import KafkaSettings, kafka_settings

SHOWN_MAX = 20
METADATA_MS = 60_000
_REPLICA = "topic string, partition int, broker int"
_BATCH = (
    "topic string, partition int, broker int, base_offset long, last_offset long, leader_epoch int, crc long,"
    " size int, high_watermark long, log_start_offset long"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """``topics``: separated by commas; all but internal ones if it is not given."""

    bootstrap_servers: str
    topics: str | None = None


def run(spark: SparkSession, options: AuditOptions, tell: Tell) -> Report:
    """Read all replicas and compare; not well if one differs or cannot be read."""
    kafka = kafka_settings({"kafka.bootstrap.servers": options.bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        replicas, offline, compacted = find_replicas(client, options.topics)
    tell(f"{len(replicas)} replicas to read")
    if not replicas:
        return Report("no replica can be read", [], is_well=False)
    rows = [(partition.topic, partition.partition, broker) for partition, broker in replicas]
    asked = spark.createDataFrame(rows, _REPLICA).repartition(min(len(rows), 8))
    batches = asked.mapInArrow(lambda blocks: _read_replicas(kafka, blocks), _BATCH).persist()
    count = batches.count()
    tell(f"{count} batches read")
    differences = find_differences(batches)
    first = differences.limit(SHOWN_MAX).collect()
    found = differences.count()
    batches.unpersist()
    tables = [
        Table(
            "differences",
            ("topic", "partition", "offset", "brokers", "what"),
            [(r["topic"], r["partition"], r["base_offset"], r["brokers"], r["what"]) for r in first],
        )
    ]
    if offline:
        tables.append(Table("replicas that are not there", ("partition", "broker"), list(offline)))
    if compacted:
        tables.append(Table("compacted, left out", ("topic",), [(name,) for name in compacted]))
    verdict = "all equal" if not found else f"{found} batches differ"
    headline = f"{len(replicas)} replicas, {count} batches: {verdict}"
    return Report(headline, [table for table in tables if table.rows], is_well=not found and not offline)


def find_replicas(
    client: Client, topics: str | None
) -> tuple[list[tuple[TopicPartition, int]], list[tuple[str, int]], list[str]]:
    """All replicas on live brokers, those on others, and the topics that are compacted."""
    wanted = None if topics is None else [name.strip() for name in topics.split(",")]
    response = client.run(describe_topics, wanted)
    live = {broker.node_id for broker in response.brokers}
    names = [t.name for t in response.topics if t.name and not t.error_code and (wanted or not t.is_internal)]
    rows = client.run(
        describe_configs, [(ResourceType.TOPIC, name) for name in names], keys=["cleanup.policy"]
    )
    compacted = [
        row.resource_name for row in rows if any("compact" in (config.value or "") for config in row.configs)
    ]
    here: list[tuple[TopicPartition, int]] = []
    gone: list[tuple[str, int]] = []
    for topic in response.topics:
        if topic.name not in names or topic.name in compacted:
            continue
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            for broker in row.replica_nodes:
                if broker in live:
                    here.append((partition, broker))
                else:
                    gone.append((str(partition), broker))
    return here, gone, compacted


def find_differences(batches: DataFrame) -> DataFrame:
    """Batches in the range that all replicas share, that not all of them hold, or hold otherwise."""
    each = ["topic", "partition"]
    ends = batches.groupBy(*each, "broker").agg(
        F.max("high_watermark").alias("high_watermark"), F.max("log_start_offset").alias("log_start_offset")
    )
    shared = ends.groupBy(*each).agg(
        F.min("high_watermark").alias("until"),
        F.max("log_start_offset").alias("from"),
        F.count("*").alias("replicas"),
    )
    inside = (
        batches.where(F.col("base_offset") >= 0)
        .join(shared, each)
        .where((F.col("last_offset") < F.col("until")) & (F.col("base_offset") >= F.col("from")))
    )
    content = F.struct("last_offset", "leader_epoch", "crc", "size")
    compared = inside.groupBy(*each, "base_offset").agg(
        F.countDistinct("broker").alias("held"),
        F.max("replicas").alias("replicas"),
        F.countDistinct(content).alias("forms"),
        F.concat_ws(",", F.sort_array(F.collect_set(F.col("broker").cast("string")))).alias("brokers"),
    )
    what = F.when(F.col("forms") > 1, F.lit("replicas differ")).otherwise(F.lit("not on all replicas"))
    differing = compared.where((F.col("forms") > 1) | (F.col("held") < F.col("replicas")))
    return differing.withColumn("what", what).orderBy(*each, "base_offset")


def _read_replicas(kafka: KafkaSettings, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task: the batch headers of each replica, up to its high watermark."""
    from ottla.spark.connections import client_for

    client = client_for(kafka.client)
    client.run(lambda engine: engine.refresh(engine.now_ms + METADATA_MS))
    for block in blocks:
        for row in block.to_pylist():
            partition = TopicPartition(row["topic"], row["partition"])
            client.engine.want_topics(partition.topic)
            client.run_until(lambda p=partition: client.engine.metadata.partition(p) is not None, METADATA_MS)  # type: ignore[misc]
            yield from _read_replica(client, kafka, partition, row["broker"])


def _read_replica(
    client: Client, kafka: KafkaSettings, partition: TopicPartition, broker: int
) -> Iterator[pa.RecordBatch]:
    from ottla.client.errors import BrokerError
    from ottla.records.batch import batches, crc_is_valid
    from ottla.spark.errors import DataLoss
    from ottla.spark.fetching import fetch_from

    names = [part.split()[0] for part in _BATCH.split(", ")]
    position, end = 0, None
    while end is None or position < end:
        try:
            row = client.run(fetch_from, kafka.consumer, partition, position, broker)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or position:
                raise
            position = _log_start(client, partition)
            continue
        end = row.high_watermark
        data = row.records or b""
        found: list[tuple[Any, ...]] = []
        for header in batches(data):
            if not crc_is_valid(data, header):
                raise DataLoss(
                    f"broker {broker} holds a corrupt batch at offset {header.base_offset} of {partition}",
                    "let it copy the partition again from its leader",
                )
            found.append(
                (
                    *partition,
                    broker,
                    header.base_offset,
                    header.last_offset,
                    header.partition_leader_epoch,
                    header.crc,
                    header.size,
                    row.high_watermark,
                    row.log_start_offset,
                )
            )
            position = header.end_offset
        if not found:
            # One row, so that a replica without batches counts as a replica.
            found.append((*partition, broker, -1, -1, -1, 0, 0, row.high_watermark, row.log_start_offset))
            position = end
        columns = [
            pa.array(list(column), type=_arrow_type(n))
            for n, column in zip(names, zip(*found, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _log_start(client: Client, partition: TopicPartition) -> int:
    from ottla.client.fetching.offsets import EARLIEST, list_offsets

    return client.run(list_offsets, {partition: EARLIEST})[partition].offset


def _arrow_type(name: str) -> pa.DataType:
    if name == "topic":
        return pa.string()
    return pa.int32() if name in ("partition", "broker", "leader_epoch", "size") else pa.int64()
