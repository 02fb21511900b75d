"""The name under which Spark discovers Ottla's data source."""

from ottla.spark.source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
