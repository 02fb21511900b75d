"""A Delta table, by the package deltalake: a commit's properties say how far it holds the topics."""

import json
from collections.abc import Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ottla.spark.lake.copying import Reached
from ottla.spark.lake.files import BY, Layout, Written
from ottla.spark.options.schema import read_schema
from ottla.spark.read.columns import arrow_schema

REACHED = "ottla.reached"
"""The commit's property with offsets, leader epochs and topic ids."""
APP = "ottla lake"
"""Whose transactions the table counts: one for each of our commits."""
NEWEST = 20
"""So many commits are looked at before all are."""


class DeltaLake:
    """The table at a directory, or at a URI that deltalake knows; the first commit makes it."""

    def __init__(self, location: str) -> None:
        self.name = location
        self.layout = Layout(location, has_all_columns=False)
        self._schema = DeltaSchema.from_arrow(arrow_schema(read_schema(True).names))
        self._table: DeltaTable | None = None

    def reached(self) -> Reached:
        self._table = self._open()
        if self._table is None:
            return {}
        counted = self._table.transaction_version(APP)
        if counted is None:
            return {}
        for limit in (1, NEWEST, None):
            for commit in self._table.history(limit):
                if REACHED in commit:
                    found: Reached = json.loads(commit[REACHED])
                    return found
        return self._by_files(self._table)

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        table = self._table or self._made()
        adds: list[AddAction | RemoveAction] = [
            AddAction(
                one.path,
                one.size,
                {"topic": one.topic, "partition": str(one.partition)},
                one.latest_us // 1000,
                True,
                _statistics(one),
            )
            for one in files
        ]
        # Without tries of its own: a commit of somebody else means that all is looked at again.
        properties = CommitProperties(
            custom_metadata={REACHED: json.dumps(reached)},
            max_commit_retries=0,
            app_transactions=[Transaction(APP, (table.transaction_version(APP) or 0) + 1)],
        )
        try:
            table.create_write_transaction(
                adds, mode="append", schema=self._schema, partition_by=list(BY), commit_properties=properties
            )
        except CommitFailedError:
            return False
        return True

    def holdings(self) -> list[tuple[object, ...]]:
        """Topic, partition, records, first and last offset, as the files' statistics have them."""
        table = self._open()
        return [] if table is None else _summed(_files_of(table))

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.name)
        except TableNotFoundError:
            return None

    def _made(self) -> DeltaTable:
        return DeltaTable.create(self.name, schema=self._schema, partition_by=list(BY), mode="ignore")

    @staticmethod
    def _by_files(table: DeltaTable) -> Reached:
        """Where our last commit was cleaned away: the offsets behind the last record of each partition."""
        found: Reached = {}
        for topic, partition, _, _, last in _summed(_files_of(table)):
            found.setdefault(str(topic), {})[str(partition)] = int(str(last)) + 1
        return found


def _statistics(one: Written) -> str:
    return json.dumps(
        {
            "numRecords": one.rows,
            "minValues": {"offset": one.first},
            "maxValues": {"offset": one.last},
            "nullCount": {"offset": 0, "timestamp": 0},
        }
    )


def _files_of(table: DeltaTable) -> list[dict[str, Any]]:
    actions = table.get_add_actions(flatten=True)
    import pyarrow as pa

    rows: list[dict[str, Any]] = pa.table(actions).to_pylist()
    return rows


def _summed(files: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
    held: dict[tuple[str, int], list[int]] = {}
    for one in files:
        row = held.setdefault(
            (one["partition.topic"], one["partition.partition"]), [0, one["min.offset"], -1]
        )
        row[0] += one["num_records"]
        row[1], row[2] = min(row[1], one["min.offset"]), max(row[2], one["max.offset"])
    return [(*key, *row) for key, row in sorted(held.items())]
