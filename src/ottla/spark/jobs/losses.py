"""losses: what unclean elections took, joined with an archive and with what groups have read.

The receipts say which offsets are gone. An archive whose newest records are from an epoch before the election
still has them; a group whose committed offset is from before has read them, and passes over what is new.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.client.admin.groups import list_group_offsets, list_groups
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.insight.history.losses import losses as all_losses
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.spark.errors import SparkRefused, refuse
from ottla.spark.jobs.shared.archives import Archive
from ottla.spark.jobs.shared.cluster import Target, find_target
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.lake.copying import Reached
from ottla.spark.lake.sink_log import SinkLog
from ottla.spark.options.kafka_settings import BOOTSTRAP, KafkaSettings, kafka_settings
from ottla.spark.read.offsets import epochs_of, from_dict, ids_of, unreachable
from ottla.spark.read.receipts import decisions_of
from ottla.spark.runtime.checkpoint import SINK_LOG, place_here

HEADER = "ottla.repaired"
"""On a record that was written back: where it was."""
UNKNOWN_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LossesOptions:
    """``directory``: an archive. ``repair``: write what it holds of lost records back."""

    bootstrap_servers: str
    topics: str | None = None
    directory: str | None = None
    repair: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """Offsets of a partition that an election took; ``until`` is exclusive, None while nobody knows it."""

    partition: TopicPartition
    epoch: int
    start: int
    until: int | None


@dataclass(frozen=True, slots=True)
class Position:
    """How far a group has committed, and in which leader epoch, as far as it said."""

    group: str
    partition: TopicPartition
    offset: int
    epoch: int


def check(options: LossesOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if options.repair and options.directory is None:
        raise SparkRefused("--repair has nothing to write back from", "name the archive with --archive")
    if options.directory is not None:
        place = place_here(options.directory)
        if place is not None and not (place / SINK_LOG).is_dir():
            raise refuse("archive", options.directory, "it holds no archive", "name what archive wrote to")
    if find_target(DECISIONS_TOPIC, options.bootstrap_servers) is None:
        raise SparkRefused(
            f"the cluster has no topic {DECISIONS_TOPIC}, in which Ottla writes down its losses",
            "ask a cluster with brokers of Ottla's",
        )


def run(spark: SparkSession, options: LossesOptions, progress: Progress) -> Report:
    """What is gone, how much of it the archive holds, and who has read it."""
    kafka = kafka_settings({BOOTSTRAP: options.bootstrap_servers}, is_sink=False)
    gone, positions = _asked(kafka, options.topics)
    progress.tell(f"{len(gone)} unclean elections may have cost records")
    targets = {
        name: find_target(name, options.bootstrap_servers) for name in {g.partition.topic for g in gone}
    }
    held = {} if options.directory is None else _held(spark, options.directory, gone, targets)
    tables = [
        Table(
            "gone",
            ("partition", "epoch", "from", "until", "archived"),
            [(g.partition, g.epoch, g.start, g.until, _count(held, g)) for g in gone],
        ),
        Table(
            "groups that have read what is gone, and pass over what is new there",
            ("group", "partition", "from", "until", "sure"),
            readers(gone, positions),
        ),
    ]
    written = 0
    if options.repair:
        for one, rows in held.items():
            target = targets[one.partition.topic]
            assert target is not None, "what is held is of a topic that is there"
            progress.left = (
                f"some of {written} records and more are written back; another run writes the rest"
            )
            _write_back(rows, one, target, options)
            written += rows.count()
    told = f"{len(gone)} unclean elections took records"
    if options.repair:
        told += f"; {written} archived ones are in their partitions again, each once"
    return Report(told, tables, is_well=not gone)


def gone_by(rows: Iterable[Mapping[str, Any]], topics: Sequence[str] | None = None) -> list[Gone]:
    """The losses in what ``__ottla_decisions`` holds, of topics as they are now."""
    histories: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if (name := row.get("partition")) is not None:
            if row.get("kind") == "decision" and row.get("before") is None:
                histories[name] = []  # The partition is new: what was before it was another's.
            histories.setdefault(name, []).append(dict(row))
    found = []
    for name, history in histories.items():
        topic, _, number = name.rpartition("-")
        if topics is not None and topic not in topics:
            continue
        for loss in all_losses(history):
            if loss.start is not None and loss.start != loss.until:
                partition = TopicPartition(topic, int(number))
                found.append(Gone(partition, loss.leader_epoch, loss.start, loss.until))
    return sorted(found, key=lambda one: (one.partition, one.epoch))


def readers(gone: Sequence[Gone], positions: Iterable[Position]) -> list[Sequence[object]]:
    """Who has read what is gone: group, partition, from, until, and whether that is sure."""
    found: list[Sequence[object]] = []
    for at in positions:
        for one in gone:
            if at.partition != one.partition or at.offset <= one.start or at.epoch >= one.epoch:
                continue
            is_within = one.until is None or at.offset <= one.until
            if at.epoch != UNKNOWN_EPOCH:
                found.append((at.group, at.partition, one.start, at.offset, "yes"))
            elif is_within:  # Who commits no epoch may have read what is new as well.
                found.append((at.group, at.partition, one.start, at.offset, "perhaps"))
    return found


def archived(one: Gone, reached: Reached, ids: Mapping[str, str]) -> tuple[int, int] | None:
    """The offsets of a loss that an archive still has: read in an epoch before it, of the same topic."""
    end, epoch = from_dict(reached).get(one.partition), epochs_of(reached).get(one.partition)
    topic = one.partition.topic
    if end is None or epoch is None or epoch >= one.epoch or ids_of(reached).get(topic) != ids.get(topic):
        return None
    return (one.start, end) if end > one.start else None


def _asked(kafka: KafkaSettings, topics: str | None) -> tuple[list[Gone], list[Position]]:
    wanted = None if topics is None else [name.strip() for name in topics.split(",") if name.strip()]
    with Client(kafka.client) as client:
        try:
            gone = gone_by(decisions_of(client), wanted)
            positions = []
            for group in sorted(row.group_id for row in client.run(list_groups)) if gone else ():
                for partition, row in client.run(list_group_offsets, group).items():
                    positions.append(
                        Position(group, partition, row.committed_offset, row.committed_leader_epoch)
                    )
        except ClientError as error:
            raise unreachable(kafka, error) from error
    return gone, positions


def _held(
    spark: SparkSession, directory: str, gone: Sequence[Gone], targets: Mapping[str, Target | None]
) -> dict[Gone, DataFrame]:
    """The archive's rows of each loss, where it has any."""
    reached = SinkLog(directory).reached()
    ids = {topic: target.id.partition("/")[2] for topic, target in targets.items() if target is not None}
    rows = Archive(spark, directory).rows()
    found: dict[Gone, DataFrame] = {}
    for one in gone:
        if (span := archived(one, reached, ids)) is not None:
            topic, number = one.partition
            of_it = (F.col("topic") == topic) & (F.col("partition") == number)
            found[one] = rows.where(of_it & (F.col("offset") >= span[0]) & (F.col("offset") < span[1]))
    return found


def _count(held: Mapping[Gone, DataFrame], one: Gone) -> int:
    return held[one].count() if one in held else 0


def _write_back(rows: DataFrame, one: Gone, target: Target, options: LossesOptions) -> None:
    """Once, however often it is asked for: the sink remembers its one version for ever."""
    place = F.concat_ws("-", "topic", "partition", "offset").cast("binary")
    mark = F.array(F.struct(F.lit(HEADER).alias("key"), place.alias("value")))
    headers = F.when(F.col("headers").isNull(), mark).otherwise(F.concat(F.col("headers"), mark))
    ordered = rows.coalesce(1).sortWithinPartitions("offset")
    once = f"ottla-repair-{target.id.partition('/')[2]}-{one.partition.partition}-{one.epoch}"
    (
        ordered.select("key", "value", "partition", "timestamp", headers.alias("headers"))
        .write.format("ottla")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("topic", one.partition.topic)
        .option("preserveTimestamp", "true")
        .option("transactionalIdPrefix", once)
        .option("txnAppId", "repair")
        .option("txnVersion", "1")
        .mode("append")
        .save()
    )
