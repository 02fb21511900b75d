"""What a task writes: the records of one range as one Parquet file, which counts when a table names it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ottla.spark.options.read import ReadOptions
from ottla.spark.options.schema import read_schema
from ottla.spark.read.batch import read_range
from ottla.spark.read.columns import arrow_schema
from ottla.spark.read.ranges import OffsetRange

BY = ("topic", "partition")
"""What files are laid out by."""
GROUP_BYTES = 64 * 1024 * 1024
"""About so much of Arrow's memory becomes a row group."""


@dataclass(frozen=True, slots=True)
class Written:
    """One file, by its path below the table, and what it holds. Times are microseconds."""

    path: str
    size: int
    topic: str
    partition: int
    rows: int
    first: int
    last: int
    earliest_us: int
    latest_us: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where files lie, and whether they hold the columns that their directories are named by."""

    location: str
    has_all_columns: bool

    @property
    def schema(self) -> pa.Schema:
        names = read_schema(True).names
        return arrow_schema([name for name in names if self.has_all_columns or name not in BY])


def write_range(options: ReadOptions, layout: Layout, wanted: OffsetRange) -> Written | None:
    """Write a range; ``None`` where it holds no record. What is left of a failed try counts for nobody."""
    topic, number = wanted.partition
    columns = read_schema(True)
    for name in BY if not layout.has_all_columns else ():
        columns = type(columns)([field for field in columns.fields if field.name != name])
    path = f"topic={topic}/partition={number}/{wanted.start:020}-{wanted.end:020}-{uuid.uuid4().hex}.parquet"
    rows, firsts, lasts, earliest, latest = 0, [], [], [], []
    writer: pq.ParquetWriter | None = None
    files, root = place_of(layout.location)
    target = f"{root}/{path}"
    try:
        for group in _groups(read_range(options, columns, wanted)):
            if writer is None:
                files.create_dir(target.rpartition("/")[0], recursive=True)
                writer = pq.ParquetWriter(target, layout.schema, filesystem=files, compression="zstd")
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
            firsts.append(group["offset"][0].as_py())
            lasts.append(group["offset"][-1].as_py())
            bounds = pc.min_max(group["timestamp"].cast(pa.int64()))
            earliest.append(bounds["min"].as_py())
            latest.append(bounds["max"].as_py())
    finally:
        if writer is not None:
            writer.close()
    if not rows:
        return None
    size = files.get_file_info(target).size
    return Written(path, size, topic, number, rows, firsts[0], lasts[-1], min(earliest), max(latest))


def place_of(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a location, and the path in it; without a scheme it is this machine's."""
    if "://" not in location and not location.startswith("file:"):
        location = str(Path(location).absolute())
    files, path = fs.FileSystem.from_uri(location)
    return files, path.rstrip("/")


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.get_total_buffer_size()
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
