"""lake: topics into a Delta or Iceberg table, each record once, without jars.

The table itself is the checkpoint: every commit holds a batch's files, and where the batch ends.
"""

import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

from ottla.spark.errors import DataLoss, SparkRefused, refuse
from ottla.spark.jobs.shared.brokers import BrokerWatch
from ottla.spark.jobs.shared.cluster import check_sources
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.jobs.shared.streams import BATCH_RECORDS, COMMITTED
from ottla.spark.lake.copying import Copying, Lake
from ottla.spark.lake.files import Layout, Written
from ottla.spark.lake.tasks import write_all
from ottla.spark.options.read import ReadOptions, a_positive, read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.ranges import OffsetRange
from ottla.spark.read.stream import StreamReader
from ottla.spark.runtime.checkpoint import check_checkpoint

PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}
ANOTHER = "copy to another table (--to)"


class OpenTable(Lake, Protocol):
    """A table that says where files go, and what it holds."""

    @property
    def layout(self) -> Layout:
        """Where files go."""

    def holdings(self) -> list[tuple[object, ...]]:
        """Topic, partition, records, first and last offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOptions:
    """``table``: a directory or URI of a Delta table, ``CATALOG.NAMESPACE.TABLE`` of an Iceberg one."""

    bootstrap_servers: str
    topics: str
    table: str
    format: str = "delta"
    starting_offsets: str = "earliest"
    max_offsets_per_batch: int = BATCH_RECORDS
    max_records_per_file: int = BATCH_RECORDS
    follow_s: float | None = None
    dry_run: bool = False
    kafka: Mapping[str, str] = field(default_factory=dict)


def check(options: LakeOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if options.format not in PACKAGES:
        raise refuse(
            "format", options.format, "there is no such format", f"choose from {', '.join(PACKAGES)}"
        )
    package = PACKAGES[options.format]
    if importlib.util.find_spec(package) is None:
        raise SparkRefused(
            f"the package {package}, which writes {options.format.capitalize()} tables, is not installed",
            "pip install 'ottla[spark,lake]'",
        )
    reading(options)
    check_sources("topics", options.topics, options.bootstrap_servers)
    if options.format == "delta":
        check_checkpoint("to", options.table)


def run(spark: SparkSession, options: LakeOptions, progress: Progress) -> Report:
    """Copy what is new since the last run; what the table holds then."""
    table = opened(options)
    reader = StreamReader(reading(options), read_schema(True))
    if options.follow_s is None:
        reader.prepareForTriggerAvailableNow()

    def write(ranges: Sequence[OffsetRange]) -> list[Written]:
        return write_all(spark, asked(options), table.layout, ranges)

    topics = [name.strip() for name in options.topics.split(",")]
    try:
        copying = Copying(table, reader, topics, write)
        if options.dry_run:
            return _told(copying, options)
        rows = _copy(copying, options, progress)
    except DataLoss as lost:
        raise SparkRefused(lost.what, ANOTHER) from lost
    columns = ("topic", "partition", "records", "first", "last")
    held = Table("the table holds", columns, list(table.holdings()))
    return Report(f"{rows} records copied now, to {options.table}", [held])


def opened(options: LakeOptions) -> OpenTable:
    """The table, which the first commit makes where it does not exist."""
    if options.format == "delta":
        from ottla.spark.lake.delta import DeltaLake

        return DeltaLake(options.table)
    from ottla.spark.lake.iceberg import IcebergLake

    return IcebergLake(options.table)


def reading(options: LakeOptions) -> ReadOptions:
    """What the reader is told, checked."""
    a_positive("max-offsets-per-batch", str(options.max_offsets_per_batch))
    a_positive("max-records-per-file", str(options.max_records_per_file))
    return read_options(asked(options), is_stream=True)


def asked(options: LakeOptions) -> dict[str, str]:
    """The options of the stream that is read."""
    return {
        **COMMITTED,
        **options.kafka,
        "kafka.bootstrap.servers": options.bootstrap_servers,
        "subscribe": options.topics,
        "startingOffsets": options.starting_offsets,
        "maxOffsetsPerTrigger": str(options.max_offsets_per_batch),
        "maxRecordsPerPartition": str(options.max_records_per_file),
    }


def _copy(copying: Copying, options: LakeOptions, progress: Progress) -> int:
    rows, batch = 0, 0
    with BrokerWatch(options.bootstrap_servers) as brokers:
        while True:
            progress.left = (
                f"{rows} records are done, in whole batches, as noted in {options.table}; "
                "the same command goes on from there"
            )
            files = copying.step()
            for line in brokers.news():
                progress.tell(line)
            if files is not None:
                count = sum(one.rows for one in files)
                rows += count
                progress.tell(f"batch {batch}: {count} records in {len(files)} files, {rows} in all")
                batch += 1
            elif options.follow_s is None:
                return rows
            else:
                time.sleep(options.follow_s)


def _told(copying: Copying, options: LakeOptions) -> Report:
    """The first batch of a run, not written."""
    planned = copying.plan()
    ranges: Sequence[Any] = [] if planned is None else planned[0]
    rows = [(one.partition.topic, one.partition.partition, one.start, one.end) for one in ranges]
    table = Table("the first batch would read", ("topic", "partition", "from", "until"), list(rows))
    return Report(
        f"{sum(one.size for one in ranges)} offsets to copy to {options.table}; nothing was written", [table]
    )
