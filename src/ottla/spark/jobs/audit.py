"""audit: the replicas of every partition, read from every broker and compared batch by batch.

Below the high watermark all replicas in sync must hold the same batches: offsets, leader epoch and checksum.
The leader's high watermark is noted first, and every replica is read up to it: one that has lost its end is
found. Brokers serve consumers from followers (KIP-392), so each replica can be asked directly. Compacted
topics are left out: each broker compacts when it likes, and rewrites batches.
"""

import json
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.options.kafka_settings import kafka_settings
from ottla.spark.read.offsets import settled_topics, unreachable
from ottla.spark.read.replicas import NAME, Replica, ReplicaSource
from ottla.wire.apis.metadata import MetadataResponsePartition

SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """``topics``: separated by commas; all but internal ones if it is not given."""

    bootstrap_servers: str
    topics: str | None = None


@dataclass(slots=True)
class Found:
    """What there is to read, and what cannot be read, or need not."""

    replicas: list[Replica] = field(default_factory=list)
    left_out: list[tuple[str, int, str]] = field(default_factory=list)
    """Partition, broker and why: with any of these the audit fails."""
    missing: list[str] = field(default_factory=list)
    """Topics that were named and do not exist."""
    compacted: list[str] = field(default_factory=list)


def check(options: AuditOptions) -> None:
    """There is nothing to refuse: what cannot be compared is in the report."""


def run(spark: SparkSession, options: AuditOptions, progress: Progress) -> Report:
    """Read all replicas and compare; the audit fails if one differs, lags or cannot be read."""
    kafka = kafka_settings({"kafka.bootstrap.servers": options.bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        try:
            found = find_replicas(client, options.topics)
        except ClientError as error:
            raise unreachable(kafka, error) from error
    progress.tell(f"{len(found.replicas)} replicas to read")
    if not found.replicas:
        return Report("no replica can be read", left_out(found), is_well=False)
    rows = [(*replica.partition, replica.broker, replica.until) for replica in found.replicas]
    spark.dataSource.register(ReplicaSource)
    reader = spark.read.format(NAME).option("kafka.bootstrap.servers", options.bootstrap_servers)
    batches = reader.option("replicas", json.dumps(rows)).load().persist()
    count = batches.where(F.col("base_offset") >= 0).count()
    progress.tell(f"{count} batches read")
    tables, differing = compare(batches)
    batches.unpersist()
    verdict = "all equal" if not differing else f"{differing} batches differ"
    if found.left_out:
        verdict += f"; {len(found.left_out)} replicas left out"
    if found.missing:
        verdict += f"; not there: {', '.join(found.missing)}"
    headline = f"{len(found.replicas)} replicas, {count} batches: {verdict}"
    is_well = not (differing or found.left_out or found.missing)
    return Report(headline, [*tables, *left_out(found)], is_well=is_well)


def compare(batches: DataFrame) -> tuple[list[Table], int]:
    """What differs, and how many batches do."""
    differences = find_differences(batches)
    first = differences.limit(SHOWN_MAX).collect()
    later = find_later_beginnings(batches).limit(SHOWN_MAX).collect()
    tables = [
        Table(
            "differences",
            ("topic", "partition", "offset", "brokers", "what"),
            [(r["topic"], r["partition"], r["base_offset"], r["brokers"], r["what"]) for r in first],
        ),
        Table(
            "logs that begin later than on other brokers, compared from there on",
            ("topic", "partition", "broker", "begins at"),
            [(r["topic"], r["partition"], r["broker"], r["log_start_offset"]) for r in later],
        ),
    ]
    return [table for table in tables if table.rows], differences.count()


def left_out(found: Found) -> list[Table]:
    """What was not compared."""
    tables = [
        Table("topics that are not there", ("topic",), [(name,) for name in found.missing]),
        Table("replicas left out", ("partition", "broker", "why"), [*found.left_out]),
        Table("compacted, left out", ("topic",), [(name,) for name in found.compacted]),
    ]
    return [table for table in tables if table.rows]


def find_replicas(client: Client, topics: str | None) -> Found:
    """The replicas in sync, each with the leader's high watermark of now; and what cannot be compared."""
    wanted = None if topics is None else [name.strip() for name in topics.split(",") if name.strip()]
    response = client.run(settled_topics, wanted)
    live = {broker.node_id for broker in response.brokers}
    present = [t for t in response.topics if t.name and not t.error_code and (wanted or not t.is_internal)]
    names = [topic.name or "" for topic in present]
    rows = client.run(
        describe_configs, [(ResourceType.TOPIC, name) for name in names], keys=["cleanup.policy"]
    )
    found = Found(missing=[name for name in dict.fromkeys(wanted or ()) if name not in names])
    found.compacted = [
        row.resource_name for row in rows if any("compact" in (config.value or "") for config in row.configs)
    ]
    in_sync: list[tuple[TopicPartition, int]] = []
    for topic in present:
        if topic.name in found.compacted:
            continue
        for row in topic.partitions:
            partition = TopicPartition(topic.name or "", row.partition_index)
            for broker in row.replica_nodes:
                if (why := _why_left_out(row, broker, live)) is None:
                    in_sync.append((partition, broker))
                else:
                    found.left_out.append((str(partition), broker, why))
    ends = client.run(list_offsets, dict.fromkeys((partition for partition, _ in in_sync), LATEST))
    found.replicas = [Replica(partition, broker, ends[partition].offset) for partition, broker in in_sync]
    return found


def _why_left_out(row: MetadataResponsePartition, broker: int, live: set[int]) -> str | None:
    if broker not in live:
        return "its broker is gone"
    if broker in row.offline_replicas:
        return "its log is offline"
    if row.leader_id not in live:
        return "the partition has no leader"
    if broker not in row.isr_nodes:
        return "it is not in sync"
    return None


def _bounds(batches: DataFrame) -> DataFrame:
    """What the replicas of a partition share: from where the last of them begins to where the audit ends."""
    each = ["topic", "partition"]
    ends = batches.groupBy(*each, "broker").agg(
        F.max("until").alias("until"), F.max("log_start_offset").alias("log_start_offset")
    )
    return ends.groupBy(*each).agg(
        F.max("until").alias("upper"),
        F.max("log_start_offset").alias("lower"),
        F.min("log_start_offset").alias("lowest"),
        F.count("*").alias("replicas"),
    )


def find_later_beginnings(batches: DataFrame) -> DataFrame:
    """Replicas whose log begins behind another's: retention, or something worse."""
    each = ["topic", "partition"]
    starts = batches.groupBy(*each, "broker").agg(F.max("log_start_offset").alias("log_start_offset"))
    bounds = _bounds(batches).select(*each, "lowest")
    later = starts.join(bounds, each).where(F.col("log_start_offset") > F.col("lowest"))
    return later.orderBy(*each, "broker")


def find_differences(batches: DataFrame) -> DataFrame:
    """Batches in the shared range that some replica lacks or holds with another content."""
    each = ["topic", "partition"]
    shared = _bounds(batches)
    inside = (
        batches.where(F.col("base_offset") >= 0)
        .join(shared, each)
        .where((F.col("last_offset") < F.col("upper")) & (F.col("base_offset") >= F.col("lower")))
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
