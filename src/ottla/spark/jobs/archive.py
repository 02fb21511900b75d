"""archive: topics into Parquet, laid out by topic and partition, each record once.

Spark's tasks write the files themselves, and the driver enters a batch's into the log that Spark's file sink
keeps: a file counts only when it is there, and the entry says where the next batch begins.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.jobs.shared.archives import Archive
from ottla.spark.jobs.shared.cluster import check_sources
from ottla.spark.jobs.shared.copies import CopyOptions, copied, planned
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.lake.sink_log import SinkLog
from ottla.spark.runtime.checkpoint import SINK_LOG, check_checkpoint, place_here

ANOTHER = "archive to another directory (--to)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions(CopyOptions):
    """Where from and where to."""

    directory: str


def check(options: ArchiveOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    options.reading()
    place = place_here(options.directory)
    if place is None or not (place / SINK_LOG).exists():  # Otherwise the copy itself reports what is gone.
        check_sources("topics", options.topics, options.bootstrap_servers)
    if not options.dry_run:
        check_checkpoint("to", options.directory)


def run(spark: SparkSession, options: ArchiveOptions, progress: Progress) -> Report:
    """Archive what is new since the last run; what the archive holds then."""
    log = SinkLog(options.directory)
    if options.dry_run:
        return planned(log, options)
    log.begin()
    rows = copied(spark, log, options, progress, ANOTHER)
    held = holdings(Archive(spark, options.directory))
    return Report(f"{rows} records archived now, to {options.directory}", [held])


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
