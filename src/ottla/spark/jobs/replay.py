"""replay: an archive's Parquet back into a topic, each source partition in its order.

At least once: how far a replay came is noted when it is done, so a run that was cut short begins again where
the last complete one ended.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell

Reached = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """``by_key``: let the partitioner choose; otherwise records keep their partition's number."""

    bootstrap_servers: str
    directory: str
    topic: str
    source_topic: str | None = None
    by_key: bool = False


def run(spark: SparkSession, options: ReplayOptions, tell: Tell) -> Report:
    """Write what was not written before."""
    note = Path(options.directory) / f"_replayed-{options.topic}.json"
    reached: Reached = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
    rows = _not_yet(spark.read.parquet(options.directory), options.source_topic, reached).persist()
    found = (
        rows.groupBy("topic", "partition")
        .agg(F.count("*").alias("records"), F.max("offset").alias("last"))
        .orderBy("topic", "partition")
        .collect()
    )
    total = sum(row["records"] for row in found)
    tell(f"{total} records to replay from {len(found)} partitions")
    if total:
        _write(rows, options, partitions=len(found))
        for row in found:
            reached.setdefault(row["topic"], {})[str(row["partition"])] = row["last"]
        note.write_text(json.dumps(reached), encoding="utf-8")
    rows.unpersist()
    table = Table(
        "replayed",
        ("topic", "partition", "records", "up to"),
        [(row["topic"], row["partition"], row["records"], row["last"]) for row in found],
    )
    return Report(f"{total} records replayed into {options.topic}", [table])


def _not_yet(archive: DataFrame, source_topic: str | None, reached: Reached) -> DataFrame:
    rows = archive if source_topic is None else archive.where(F.col("topic") == source_topic)
    for topic, partitions in reached.items():
        for number, last in partitions.items():
            is_done = (
                (F.col("topic") == topic) & (F.col("partition") == int(number)) & (F.col("offset") <= last)
            )
            rows = rows.where(~is_done)
    return rows


def _write(rows: DataFrame, options: ReplayOptions, partitions: int) -> None:
    columns = ["key", "value", "headers", "timestamp"]
    # A source partition lies in one task, sorted: that keeps its order.
    ordered = rows.repartition(partitions, "topic", "partition").sortWithinPartitions(
        "topic", "partition", "offset"
    )
    if not options.by_key:
        columns.append("partition")
    (
        ordered.select(*columns)
        .write.format("ottla")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("topic", options.topic)
        .option("preserveTimestamp", "true")
        .mode("append")
        .save()
    )
