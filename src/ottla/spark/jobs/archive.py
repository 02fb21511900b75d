"""archive: topics into Parquet, partitioned by topic and partition, each record once.

Spark's file sink and its checkpoint make it exact: a file counts only when its batch is in the sink's log,
and a batch that is repeated after a crash covers the same offsets.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.errors import refuse
from ottla.spark.jobs.shared.archives import Archive
from ottla.spark.jobs.shared.brokers import BrokerWatch
from ottla.spark.jobs.shared.cluster import check_sources
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.jobs.shared.streams import BATCH_RECORDS, run_to_end, topic_stream
from ottla.spark.runtime.checkpoint import SINK_LOG, check_checkpoint, has_begun

CHECKPOINT = "_checkpoint"
ANOTHER = "archive to another directory (--to)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """Where from and where to. ``follow_s``: go on, with a batch every so many seconds."""

    bootstrap_servers: str
    topics: str
    directory: str
    max_offsets_per_batch: int = BATCH_RECORDS
    follow_s: float | None = None


def check(options: ArchiveOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if not has_begun(f"{options.directory}/{CHECKPOINT}"):  # Otherwise the query itself reports what is gone.
        check_sources("topics", options.topics, options.bootstrap_servers)
    check_checkpoint("to", options.directory)


def run(spark: SparkSession, options: ArchiveOptions, progress: Progress) -> Report:
    """Archive what is new since the last run; what the archive holds then."""
    archive = Archive(spark, options.directory)
    check_whole(archive)
    limits = {"maxOffsetsPerTrigger": str(options.max_offsets_per_batch)}
    stream = topic_stream(spark, options.bootstrap_servers, options.topics, options=limits)
    writer = (
        stream.writeStream.format("parquet")
        .partitionBy("topic", "partition")
        .option("path", options.directory)
        .option("checkpointLocation", archive.path_of(CHECKPOINT))
    )
    brokers = BrokerWatch(options.bootstrap_servers)
    rows = run_to_end(writer, options.follow_s, progress, archive.path_of(CHECKPOINT), ANOTHER, brokers)
    return Report(f"{rows} records archived now, to {options.directory}", [holdings(archive)])


def check_whole(archive: Archive) -> None:
    """Refuse an archive whose checkpoint was removed.

    The sink's log is still there: it would take the batches of a new query for repeated ones and drop them.
    """
    if archive.has(SINK_LOG) and not archive.has(CHECKPOINT):
        why = f"it holds an archive whose {CHECKPOINT} is missing, and would take no new records"
        raise refuse("to", archive.location, why, ANOTHER)


def holdings(archive: Archive) -> Table:
    """What an archive holds; offsets missing in between are counted (compaction may have removed them)."""
    found = (
        archive.rows()
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
