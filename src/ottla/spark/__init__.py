"""Ottla's data pipeline: a Spark data source for any Kafka cluster, and the jobs built on it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make ``format("ottla")`` known to a session, without waiting for Spark's own discovery."""
    from ottla.spark.source import OttlaDataSource

    spark.dataSource.register(OttlaDataSource)
