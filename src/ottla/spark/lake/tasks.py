"""Files written by Spark's tasks: a source of which each range is a task, and each row tells of a file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.model.ids import TopicPartition, topic_id_from_text, topic_id_text
from ottla.spark.lake.files import Layout, Written, write_range
from ottla.spark.options.read import read_options
from ottla.spark.read.ranges import OffsetRange

NAME = "ottla-files"
_READING, _LAYOUT, _RANGES = "reading", "layout", "ranges"


def write_all(
    spark: SparkSession, reading: Mapping[str, str], layout: Layout, ranges: Sequence[OffsetRange]
) -> list[Written]:
    """Every range in a task of its own. ``reading``: the options of a stream."""
    spark.dataSource.register(FilesSource)
    task = spark.read.format(NAME).option(_READING, json.dumps(dict(reading)))
    told = [
        (*one.partition, one.start, one.end, topic_id_text(one.topic_id) if one.topic_id else None)
        for one in ranges
    ]
    rows = task.options(**{_LAYOUT: json.dumps(asdict(layout)), _RANGES: json.dumps(told)}).load().collect()
    return [Written(**json.loads(row["written"])) for row in rows]


class FilesSource(DataSource):
    """Reading it writes files."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "written STRING"

    def reader(self, schema: StructType) -> DataSourceReader:
        return FilesReader({str(name): str(value) for name, value in self.options.items()})


class FilesReader(DataSourceReader):
    """A file for each range."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = read_options(json.loads(given[_READING]), is_stream=True)
        self._layout = Layout(**json.loads(given[_LAYOUT]))
        self._ranges: list[list[Any]] = json.loads(given[_RANGES])

    def partitions(self) -> Sequence[InputPartition]:
        return [
            OffsetRange(TopicPartition(topic, number), start, end, topic_id_from_text(id_) if id_ else None)
            for topic, number, start, end, id_ in self._ranges
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """Runs in a task."""
        assert isinstance(partition, OffsetRange), "Spark hands back our own partitions"
        written = write_range(self._options, self._layout, partition)
        if written is not None:
            yield (json.dumps(asdict(written)),)
