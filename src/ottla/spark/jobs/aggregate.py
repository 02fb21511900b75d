"""aggregate: counts and sums per time window, from topic to topic, with a watermark.

A window is written once, when the watermark has passed its end.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ottla.spark.errors import refuse
from ottla.spark.jobs.shared.brokers import BrokerWatch
from ottla.spark.jobs.shared.cluster import check_sources, check_target
from ottla.spark.jobs.shared.report import Progress, Report
from ottla.spark.jobs.shared.streams import ANOTHER_CHECKPOINT, run_to_end, topic_stream
from ottla.spark.runtime.checkpoint import check_checkpoint, claim_checkpoint, has_begun

_UNITS = "microsecond|millisecond|second|minute|hour|day|week|month|year"
_SPAN = re.compile(rf"(\s*(\d+\s+({_UNITS})|\d+\.\d+\s+second)s?\b)+\s*", re.IGNORECASE)
_SOMETHING = re.compile("[1-9]")
_LIKE = "write '1 minute', or '1 hour 30 minutes'"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOptions:
    """``group_by`` and ``sum_of`` are fields of the JSON value; without them records are counted by key."""

    bootstrap_servers: str
    topic: str
    to_topic: str
    checkpoint: str
    window: str = "1 minute"
    watermark: str = "1 minute"
    group_by: str | None = None
    sum_of: str | None = None
    follow_s: float | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of the client that reads."""


def check(options: AggregateOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if not has_begun(options.checkpoint):  # Otherwise the query itself reports what is gone.
        check_sources("topic", options.topic, options.bootstrap_servers)
    check_span("window", options.window, is_of_windows=True)
    check_span("watermark", options.watermark)
    check_target(options.to_topic, options.bootstrap_servers)
    check_checkpoint("checkpoint", options.checkpoint)
    claim_checkpoint("checkpoint", options.checkpoint, "aggregate")


def run(spark: SparkSession, options: AggregateOptions, progress: Progress) -> Report:
    """Aggregate what is new since the last run; windows that are still open wait for the next."""
    group = _field(options.group_by) if options.group_by else F.col("key").cast("string")
    columns: list[Column] = [F.count("*").alias("count")]
    if options.sum_of:
        columns.append(F.sum(_field(options.sum_of).try_cast("double")).alias("sum"))
    stream = topic_stream(spark, options.bootstrap_servers, options.topic, options=options.kafka)
    windows = (
        stream.withColumn("group", group)
        .withWatermark("timestamp", options.watermark)
        .groupBy(F.window("timestamp", options.window), "group")
        .agg(*columns)
    )
    fields = [
        F.date_format("window.start", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX").alias("from"),
        F.date_format("window.end", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX").alias("until"),
        F.col("group"),
        F.col("count"),
        *([F.col("sum")] if options.sum_of else []),
    ]
    writer = (
        windows.select(F.col("group").alias("key"), F.to_json(F.struct(*fields)).alias("value"))
        .writeStream.format("ottla")
        .outputMode("append")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("topic", options.to_topic)
        .option("checkpointLocation", options.checkpoint)
    )
    brokers = BrokerWatch(options.bootstrap_servers)
    rows = run_to_end(writer, options.follow_s, progress, options.checkpoint, ANOTHER_CHECKPOINT, brokers)
    return Report(f"{rows} records aggregated into windows of {options.window} on {options.to_topic}")


def check_span(option: str, value: str, is_of_windows: bool = False) -> None:
    """Refuse a text that Spark does not read as a span of time, or as the length of a window."""
    if not _SPAN.fullmatch(value):
        raise refuse(option, value, "it is not a span of time", _LIKE)
    if is_of_windows and not _SOMETHING.search(value):
        raise refuse(option, value, "it has no length", _LIKE)


def _field(name: str) -> Column:
    return F.get_json_object(F.col("value").cast("string"), f"$.{name}")
