"""audit: the replicas of every partition, read from every broker and compared batch by batch.

Below the high watermark all replicas must hold the same batches: offsets, leader epoch and checksum. Brokers
serve consumers from followers (KIP-392), so each replica can be asked directly. Compacted topics are left
out: each broker compacts when it likes, and rewrites batches.
"""

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking import Client
from ottla.model.ids import TopicPartition
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell
from ottla.spark.kafka_settings import kafka_settings
from ottla.spark.replicas import NAME, ReplicaSource

SHOWN_MAX = 20


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
    spark.dataSource.register(ReplicaSource)
    reader = spark.read.format(NAME).option("kafka.bootstrap.servers", options.bootstrap_servers)
    batches = reader.option("replicas", json.dumps(rows)).load().persist()
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
