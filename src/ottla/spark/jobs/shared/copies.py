"""What archive and lake share: topics copied into a table by tasks that write Parquet themselves."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Protocol

from pyspark.sql import SparkSession

from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.jobs.shared.brokers import LOOK_S, BrokerWatch, Watch
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.jobs.shared.streams import BATCH_RECORDS, COMMITTED
from ottla.spark.lake.copying import Copying, Lake
from ottla.spark.lake.files import Layout, Written
from ottla.spark.lake.tasks import write_all
from ottla.spark.options.read import ReadOptions, a_positive, read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.ranges import OffsetRange
from ottla.spark.read.stream import StreamReader


class OpenTable(Lake, Protocol):
    """A table that says where its files go."""

    @property
    def layout(self) -> Layout:
        """Where files go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """What to read, in which slices. ``follow_s``: go on, and look again every so many seconds."""

    bootstrap_servers: str
    topics: str
    starting_offsets: str = "earliest"
    max_offsets_per_batch: int = BATCH_RECORDS
    max_records_per_file: int = BATCH_RECORDS
    follow_s: float | None = None
    dry_run: bool = False
    kafka: Mapping[str, str] = field(default_factory=dict)

    def asked(self) -> dict[str, str]:
        """The options of the stream that is read."""
        return {
            **COMMITTED,
            **self.kafka,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topics,
            "startingOffsets": self.starting_offsets,
            "maxOffsetsPerTrigger": str(self.max_offsets_per_batch),
            "maxRecordsPerPartition": str(self.max_records_per_file),
        }

    def reading(self) -> ReadOptions:
        """What the reader is told, checked."""
        a_positive("max-offsets-per-batch", str(self.max_offsets_per_batch))
        a_positive("max-records-per-file", str(self.max_records_per_file))
        return read_options(self.asked(), is_stream=True)


def planned(table: OpenTable, options: CopyOptions) -> Report:
    """The first batch of a run, not written."""
    read = options.reading()
    plan = Copying(table, StreamReader(read, read_schema(True)), read.subscription.topics, _nowhere).plan()
    ranges: Sequence[Any] = [] if plan is None else plan[0]
    rows = [(one.partition.topic, one.partition.partition, one.start, one.end) for one in ranges]
    found = Table("the first batch would read", ("topic", "partition", "from", "until"), list(rows))
    count = sum(one.size for one in ranges)
    return Report(f"{count} offsets to copy to {table.name}; nothing was written", [found])


def copied(spark: SparkSession, table: OpenTable, options: CopyOptions, progress: Progress, anew: str) -> int:
    """Copy what is new since the last run; how many records. ``anew``: the advice after lost data."""
    read = options.reading()
    reader = StreamReader(read, read_schema(True))
    if options.follow_s is None:
        reader.prepareForTriggerAvailableNow()

    def write(ranges: Sequence[OffsetRange]) -> list[Written]:
        return write_all(spark, options.asked(), table.layout, ranges)

    try:
        copying = Copying(table, reader, read.subscription.topics, write)
        return _copy(copying, table.name, options, progress)
    except DataLoss as lost:
        raise SparkRefused(lost.what, anew) from lost


def _copy(copying: Copying, place: str, options: CopyOptions, progress: Progress) -> int:
    rows, batch = 0, 0
    with BrokerWatch(options.bootstrap_servers) as brokers, _passing_on(brokers, progress):
        while True:
            progress.left = (
                f"{rows} records are done, in whole batches, as noted in {place}; "
                "the same command goes on from there"
            )
            files = copying.step()
            if files is not None:
                count = sum(one.rows for one in files)
                rows += count
                progress.tell(f"batch {batch}: {count} records in {len(files)} files, {rows} in all")
                batch += 1
            elif options.follow_s is None:
                return rows
            else:
                time.sleep(options.follow_s)


@contextmanager
def _passing_on(brokers: Watch, progress: Progress) -> Iterator[None]:
    """Tell the news of brokers at once, while a batch waits for one of them, too."""
    is_over = Event()

    def tell() -> None:
        while not is_over.wait(LOOK_S):
            for line in brokers.news():
                progress.tell(line)

    teller = Thread(target=tell, name="news of brokers", daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _nowhere(ranges: Sequence[Any]) -> list[Written]:
    raise AssertionError(f"a plan writes nothing, and not {len(ranges)} ranges")
