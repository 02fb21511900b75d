"""replay: an archive's Parquet back into a topic, each source partition in its order.

At least once: how far a replay came is noted when it is done, so a run that was cut short begins again where
the last complete one ended. A note counts for one topic of one cluster: a topic of the same name elsewhere,
or one that was made again, gets everything.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ottla.spark.errors import OptionRefused, refuse
from ottla.spark.jobs.shared.archives import Archive
from ottla.spark.jobs.shared.cluster import Target, find_target
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.options.write import write_options
from ottla.spark.runtime.checkpoint import SINK_LOG, place_here

Reached = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """``by_key``: let the partitioner choose; otherwise records keep their partition's number.

    ``since`` and ``until`` are times (until exclusive), ``where`` a condition in SQL over the columns.
    """

    bootstrap_servers: str
    directory: str
    topic: str
    source_topic: str | None = None
    by_key: bool = False
    since: str | None = None
    until: str | None = None
    where: str | None = None
    dry_run: bool = False
    kafka: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_choice(self) -> bool:
        """Whether only some records are wanted: those are written whole by every run, and not noted."""
        return any(each is not None for each in (self.since, self.until, self.where))


def check(options: ReplayOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    write_options(_writing(options))
    for flag, value in (("since", options.since), ("until", options.until)):
        if value is not None:
            a_time(flag, value)
    place = place_here(options.directory)
    if place is not None and not place.is_dir():
        raise _no_archive(options.directory, "there is no such directory")
    is_noted = not (options.is_choice or options.dry_run)
    if is_noted and place is not None and not os.access(place, os.W_OK | os.X_OK):
        why = "it may not be written to, and how far a replay came is noted in it"
        raise refuse("from", options.directory, why, "change its permissions, or copy the archive")


def run(spark: SparkSession, options: ReplayOptions, progress: Progress) -> Report:
    """Write what was not written before, if the topic can take all of it."""
    archive = Archive(spark, options.directory)
    check_archive(archive)
    note = f"_replayed-{options.topic}.json"
    notes: dict[str, Reached] = json.loads(archive.note(note) or "{}")
    target = find_target(options.topic, options.bootstrap_servers)
    reached: Reached = {}
    if target is not None and not options.is_choice:
        reached = notes.get(target.id, {})
    rows = _not_yet(chosen(archive.rows(), options), options.source_topic, reached).persist()
    found = (
        rows.groupBy("topic", "partition")
        .agg(F.count("*").alias("records"), F.max("offset").alias("last"))
        .orderBy("topic", "partition")
        .collect()
    )
    if not found:
        check_source_topic(archive, options.source_topic)
    target = fit_for(found, target, options)
    total = sum(row["records"] for row in found)
    progress.tell(f"{total} records to replay from {len(found)} partitions")
    if total and not options.dry_run:
        progress.left = f"some of {total} records may be in {options.topic}; another run writes all again"
        _write(rows, options, partitions=len(found))
        if not options.is_choice:
            for row in found:
                reached.setdefault(row["topic"], {})[str(row["partition"])] = row["last"]
            archive.write_note(note, json.dumps(notes | {target.id: reached}))
    rows.unpersist()
    table = Table(
        "to replay" if options.dry_run else "replayed",
        ("topic", "partition", "records", "up to"),
        [(row["topic"], row["partition"], row["records"], row["last"]) for row in found],
    )
    if options.dry_run:
        return Report(f"{total} records to replay into {options.topic}; nothing was written", [table])
    return Report(f"{total} records replayed into {options.topic}", [table])


def chosen(rows: DataFrame, options: ReplayOptions) -> DataFrame:
    """The records in the span of time, and of the condition."""
    if options.since is not None:
        rows = rows.where(F.col("timestamp") >= F.lit(a_time("since", options.since)))
    if options.until is not None:
        rows = rows.where(F.col("timestamp") < F.lit(a_time("until", options.until)))
    if options.where is not None:
        try:
            rows = rows.where(options.where)
            rows.schema  # noqa: B018 - Spark reads the condition now, not in the middle of a replay
        except (AnalysisException, ParseException) as wrong:
            why = str(wrong).strip().splitlines()[0]
            raise refuse(
                "where", options.where, why, "write SQL, like \"key = 'a'\" or 'offset < 100'"
            ) from None
    return rows


def a_time(flag: str, value: str) -> datetime:
    """A time as ISO 8601 writes it; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise refuse(flag, value, "it is no time", "write 2026-03-01T12:00, or 2026-03-01") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def check_archive(archive: Archive) -> None:
    """Refuse a directory without an archive."""
    if not archive.exists():
        raise _no_archive(archive.location, "there is no such directory")
    if not archive.has(SINK_LOG):
        raise _no_archive(archive.location, f"it holds no archive: there is no {SINK_LOG} in it")


def _no_archive(location: str, why: str) -> OptionRefused:
    return refuse("from", location, why, "name the directory that the job archive wrote to (its --to)")


def check_source_topic(archive: Archive, source_topic: str | None) -> None:
    """Refuse a source topic that was never archived."""
    held = sorted(row["topic"] for row in archive.rows().select("topic").distinct().collect())
    if source_topic is not None and source_topic not in held:
        why = f"the archive holds no record of it, but of {', '.join(held) or 'no topic'}"
        raise refuse("source-topic", source_topic, why, "choose one of these, or leave it out for all")


def fit_for(found: Sequence[Row], target: Target | None, options: ReplayOptions) -> Target:
    """The topic, if it is there and has a partition for each that is replayed; a replay cut short in the
    middle would leave half of it."""
    needed = max((row["partition"] + 1 for row in found), default=1)
    flags = f"--topic {options.topic} --partitions {needed}"
    if target is None:
        remedy = f"make it: `ottla topics --create {flags}`"
        raise refuse("topic", options.topic, "the cluster has no such topic, and nothing was written", remedy)
    if target.partition_count < needed and not options.by_key:
        why = (
            f"it has {target.partition_count} of the {needed} partitions that the archive's records keep,"
            " and nothing was written"
        )
        remedy = f"add partitions (`ottla topics --alter {flags}`), or let keys choose with --by-key"
        raise refuse("topic", options.topic, why, remedy)
    return target


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
    (ordered.select(*columns).write.format("ottla").options(**_writing(options)).mode("append").save())


def _writing(options: ReplayOptions) -> dict[str, str]:
    return {
        **options.kafka,
        "kafka.bootstrap.servers": options.bootstrap_servers,
        "topic": options.topic,
        "preserveTimestamp": "true",
    }
