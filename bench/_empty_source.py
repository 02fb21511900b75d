"""A Python streaming source that makes a few rows out of nothing: what a trigger costs at the least."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

TRIGGERS = 25
TASKS = 4
ROWS_PER_TASK = 2


class EmptySource(DataSource):
    """As many triggers, tasks and rows as the bench asks of the connectors."""

    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader()


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def initialOffset(self) -> dict[str, Any]:
        return {"n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(1)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        return {"n": min((start or {"n": 0})["n"] + 1, TRIGGERS)}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(n) for n in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        values = pa.array([b"x" * 100] * ROWS_PER_TASK, pa.binary())
        yield pa.RecordBatch.from_arrays([values], schema=pa.schema([pa.field("value", pa.binary())]))
