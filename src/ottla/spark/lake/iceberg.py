"""An Iceberg table, by the package pyiceberg: a table property says how far it holds the topics.

It changes in the commit that adds the files, and stays when snapshots expire. Each snapshot's summary has it,
too.
"""

import json
from collections.abc import Sequence
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from ottla.spark.errors import refuse
from ottla.spark.lake.copying import Reached
from ottla.spark.lake.files import BY, Layout, Written
from ottla.spark.options.schema import read_schema
from ottla.spark.read.columns import arrow_schema

REACHED = "ottla.reached"
"""The property with offsets, leader epochs and topic ids."""
_TRIES = "commit.retry.num-retries"


class IcebergLake:
    """``CATALOG.NAMESPACE.TABLE``; where the catalog is, pyiceberg's own configuration says."""

    def __init__(self, name: str) -> None:
        self.name = name
        catalog, _, self._identifier = name.partition(".")
        if "." not in self._identifier:
            raise refuse("to", name, "it names no table", "write CATALOG.NAMESPACE.TABLE")
        self._catalog = _catalog(name, catalog)
        self._table: Table | None = None

    @property
    def layout(self) -> Layout:
        """Where files go; the table is made if there is none."""
        table = self._table or self._made()
        return Layout(f"{table.location()}/data", has_all_columns=True)

    def reached(self) -> Reached:
        self._table = self._open()
        found: Reached = (
            json.loads(self._table.properties.get(REACHED, "{}")) if self._table is not None else {}
        )
        return found

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        table = self._table or self._made()
        # Without tries of its own: a commit of somebody else means that all is looked at again.
        table.metadata.properties[_TRIES] = "0"
        says = {REACHED: json.dumps(reached)}
        paths = [f"{table.location()}/data/{one.path}" for one in files]
        try:
            with table.transaction() as transaction:
                transaction.add_files(paths, snapshot_properties=says, check_duplicate_files=False)
                transaction.set_properties(says)
        except CommitFailedException:
            return False
        return True

    def holdings(self) -> list[tuple[object, ...]]:
        """Topic, partition, records, first and last offset, as the files' statistics have them."""
        table = self._open()
        held: dict[tuple[Any, ...], list[int]] = {}
        for one in table.inspect.files().to_pylist() if table is not None else ():
            offsets = one["readable_metrics"]["offset"]
            first, last = offsets["lower_bound"], offsets["upper_bound"]
            row = held.setdefault(tuple(one["partition"][name] for name in BY), [0, first, last])
            row[0] += one["record_count"]
            row[1], row[2] = min(row[1], first), max(row[2], last)
        return [(*key, *row) for key, row in sorted(held.items())]

    def _open(self) -> Table | None:
        try:
            return self._catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None

    def _made(self) -> Table:
        self._catalog.create_namespace_if_not_exists(self._identifier.rpartition(".")[0])
        schema = arrow_schema(read_schema(True).names)
        try:
            making = self._catalog.create_table_transaction(self._identifier, schema=schema)
            with making, making.update_spec() as spec:
                for column in BY:
                    spec.add_identity(column)
        except TableAlreadyExistsError:
            pass  # Another run was quicker.
        self._table = self._catalog.load_table(self._identifier)
        return self._table


def _catalog(name: str, catalog: str) -> Catalog:
    try:
        return load_catalog(catalog)
    except ValueError as wrong:
        why = f"pyiceberg does not know the catalog {catalog} ({str(wrong).splitlines()[0]})"
        remedy = f"name it in .pyiceberg.yaml, or in PYICEBERG_CATALOG__{catalog.upper()}__URI"
        raise refuse("to", name, why, remedy) from None
