"""replay: an archive's Parquet back into a topic, each source partition in its order.

At least once: how far a replay came is noted when it is done, so a run that was cut short begins again where
the last complete one ended. A note counts for one topic of one cluster: a topic of the same name elsewhere,
or one that was made again, gets everything.
"""

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.client.blocking import Client
from ottla.client.errors import ClientError
from ottla.model.ids import TopicId, topic_id_text
from ottla.spark.errors import refuse
from ottla.spark.jobs.archives import Archive
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell
from ottla.spark.kafka_settings import kafka_settings
from ottla.spark.offsets import settled_topics, unreachable

Reached = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """``by_key``: let the partitioner choose; otherwise records keep their partition's number."""

    bootstrap_servers: str
    directory: str
    topic: str
    source_topic: str | None = None
    by_key: bool = False


def run(spark: SparkSession, options: ReplayOptions, tell: Tell) -> Report:
    """Write what was not written before."""
    archive = Archive(spark, options.directory)
    if not archive.exists():
        raise refuse("from", options.directory, "there is no such directory", "name that of an archive")
    note = f"_replayed-{options.topic}.json"
    notes: dict[str, Reached] = json.loads(archive.note(note) or "{}")
    target = target_of(options)
    reached: Reached = notes.get(target or "", {})
    rows = _not_yet(archive.rows(), options.source_topic, reached).persist()
    found = (
        rows.groupBy("topic", "partition")
        .agg(F.count("*").alias("records"), F.max("offset").alias("last"))
        .orderBy("topic", "partition")
        .collect()
    )
    total = sum(row["records"] for row in found)
    tell(f"{total} records to replay from {len(found)} partitions")
    if total:
        _write(rows, options, partitions=len(found))
        for row in found:
            reached.setdefault(row["topic"], {})[str(row["partition"])] = row["last"]
        if (noted := target or target_of(options)) is not None:
            archive.write_note(note, json.dumps(notes | {noted: reached}))
    rows.unpersist()
    table = Table(
        "replayed",
        ("topic", "partition", "records", "up to"),
        [(row["topic"], row["partition"], row["records"], row["last"]) for row in found],
    )
    return Report(f"{total} records replayed into {options.topic}", [table])


def target_of(options: ReplayOptions) -> str | None:
    """The cluster's id and the topic's, for the note; ``None`` while there is no such topic."""
    kafka = kafka_settings({"kafka.bootstrap.servers": options.bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        try:
            response = client.run(settled_topics, [options.topic])
        except ClientError as error:
            raise unreachable(kafka, error) from error
    (topic,) = response.topics
    return None if topic.error_code else f"{response.cluster_id}/{topic_id_text(TopicId(topic.topic_id))}"


def _not_yet(archive: DataFrame, source_topic: str | None, reached: Reached) -> DataFrame:
    rows = archive if source_topic is None else archive.where(F.col("topic") == source_topic)
    for topic, partitions in reached.items():
        for number, last in partitions.items():
            is_done = (
                (F.col("topic") == topic) & (F.col("partition") == int(number)) & (F.col("offset") <= last)
            )
            rows = rows.where(~is_done)
    return rows


def _write(rows: DataFrame, options: ReplayOptions, partitions: int) -> None:
    columns = ["key", "value", "headers", "timestamp"]
    # A source partition lies in one task, sorted: that keeps its order.
    ordered = rows.repartition(partitions, "topic", "partition").sortWithinPartitions(
        "topic", "partition", "offset"
    )
    if not options.by_key:
        columns.append("partition")
    (
        ordered.select(*columns)
        .write.format("ottla")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("topic", options.topic)
        .option("preserveTimestamp", "true")
        .mode("append")
        .save()
    )
