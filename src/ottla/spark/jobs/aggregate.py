"""aggregate: counts and sums per time window, from topic to topic, with a watermark.

A window is written once, when no record can come any more that the watermark would let in.
"""

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ottla.spark.checkpoint import check_checkpoint
from ottla.spark.jobs.report import Report
from ottla.spark.jobs.streams import Tell, run_to_end, topic_stream


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


def run(spark: SparkSession, options: AggregateOptions, tell: Tell) -> Report:
    """Aggregate what is new since the last run; windows that are still open wait for the next."""
    check_checkpoint("checkpoint", options.checkpoint)
    group = _field(options.group_by) if options.group_by else F.col("key").cast("string")
    columns: list[Column] = [F.count("*").alias("count")]
    if options.sum_of:
        columns.append(F.sum(_field(options.sum_of).try_cast("double")).alias("sum"))
    stream = topic_stream(spark, options.bootstrap_servers, options.topic)
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
    rows = run_to_end(writer, options.follow_s, tell)
    return Report(f"{rows} records aggregated into windows of {options.window} on {options.to_topic}")


def _field(name: str) -> Column:
    return F.get_json_object(F.col("value").cast("string"), f"$.{name}")
