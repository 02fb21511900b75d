"""archive: topics into Parquet, partitioned by topic and partition, each record once.

Spark's file sink and its checkpoint make it exact: a file counts only when its batch is in the sink's log,
and a batch that is repeated after a crash covers the same offsets.
"""

from dataclasses import dataclass
from pathlib import PurePath

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.checkpoint import check_checkpoint
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell, run_to_end, topic_stream

CHECKPOINT = "_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """Where from and where to. ``follow_s``: go on, with a batch every so many seconds."""

    bootstrap_servers: str
    topics: str
    directory: str
    max_offsets_per_batch: int = 5_000_000
    follow_s: float | None = None


def run(spark: SparkSession, options: ArchiveOptions, tell: Tell) -> Report:
    """Archive what is new since the last run; what the archive holds then."""
    check_checkpoint("to", options.directory)
    limits = {"maxOffsetsPerTrigger": str(options.max_offsets_per_batch)}
    stream = topic_stream(spark, options.bootstrap_servers, options.topics, options=limits)
    writer = (
        stream.writeStream.format("parquet")
        .partitionBy("topic", "partition")
        .option("path", options.directory)
        .option("checkpointLocation", str(PurePath(options.directory) / CHECKPOINT))
    )
    rows = run_to_end(writer, options.follow_s, tell)
    return Report(
        f"{rows} records archived now, to {options.directory}", [holdings(spark, options.directory)]
    )


def holdings(spark: SparkSession, directory: str) -> Table:
    """What lies in an archive; offsets that are absent between are counted (compaction may take them)."""
    found = (
        spark.read.parquet(directory)
        .groupBy("topic", "partition")
        .agg(F.count("*").alias("records"), F.min("offset").alias("first"), F.max("offset").alias("last"))
        .orderBy("topic", "partition")
        .collect()
    )
    rows = [
        (
            r["topic"],
            r["partition"],
            r["records"],
            r["first"],
            r["last"],
            r["last"] - r["first"] + 1 - r["records"],
        )
        for r in found
    ]
    return Table(
        "the archive holds", ("topic", "partition", "records", "first", "last", "absent"), list(rows)
    )
