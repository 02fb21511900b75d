"""lake: topics into a Delta or Iceberg table, each record once, without jars.

The table itself is the checkpoint: every commit holds a batch's files, and where the batch ends.
"""

import importlib.util
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from ottla.spark.errors import SparkRefused, refuse
from ottla.spark.jobs.shared.cluster import check_sources
from ottla.spark.jobs.shared.copies import CopyOptions, OpenTable, copied, planned
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.runtime.checkpoint import check_checkpoint

PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}
ANOTHER = "copy to another table (--to)"


class LakeTable(OpenTable, Protocol):
    """A table that says what it holds."""

    def holdings(self) -> list[tuple[object, ...]]:
        """Topic, partition, records, first and last offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOptions(CopyOptions):
    """``table``: a directory or URI of a Delta table, ``CATALOG.NAMESPACE.TABLE`` of an Iceberg one."""

    table: str
    format: str = "delta"


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
    options.reading()
    check_sources("topics", options.topics, options.bootstrap_servers)
    if options.format == "delta" and not options.dry_run:
        check_checkpoint("to", options.table)


def run(spark: SparkSession, options: LakeOptions, progress: Progress) -> Report:
    """Copy what is new since the last run; what the table holds then."""
    table = opened(options)
    if options.dry_run:
        return planned(table, options)
    rows = copied(spark, table, options, progress, ANOTHER)
    columns = ("topic", "partition", "records", "first", "last")
    held = Table("the table holds", columns, list(table.holdings()))
    return Report(f"{rows} records copied now, to {options.table}", [held])


def opened(options: LakeOptions) -> LakeTable:
    """The table, which the first commit makes where it does not exist."""
    if options.format == "delta":
        from ottla.spark.lake.delta import DeltaLake

        return DeltaLake(options.table)
    from ottla.spark.lake.iceberg import IcebergLake

    return IcebergLake(options.table)
