"""plan: a reassignment that evens out leaders and bytes, with as few moves as possible.

Bytes are measured: every broker says how large its replicas are. The plan is the JSON that reassignment tools
take; nothing is moved here. The answers fit into memory, so it is the one job that needs no Spark.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ottla.client.admin.cluster import describe_log_dirs, list_partition_reassignments
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.spark.errors import refuse
from ottla.spark.jobs.balance import Assignment, balanced, bytes_on, leaders_on
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.options.kafka_settings import kafka_settings
from ottla.spark.options.read import offsets_json
from ottla.spark.read.offsets import settled_topics, unreachable
from ottla.spark.runtime.checkpoint import check_file
from ottla.wire.apis.metadata import MetadataResponseBroker


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """``moves_max``: how many replicas may change their broker; a change of leader alone is not a move."""

    bootstrap_servers: str
    file: str
    moves_max: int = 10
    weights: str | None = None
    """A file of the job hot: partitions weigh what they carry, not what they hold."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The live brokers, their racks, who has what, and how large each partition is (its largest replica)."""

    brokers: list[int]
    racks: dict[int, str]
    """Empty unless every broker has one, as in Kafka."""
    before: Assignment
    """Of partitions that are on the move: where they go."""
    moving: list[TopicPartition]
    sizes: dict[TopicPartition, int]


def check(options: PlanOptions) -> None:
    """Refuse what can be seen to be wrong before the cluster is asked."""
    check_file("to", options.file)
    if options.weights is not None:
        read_weights(options.weights)


def run(options: PlanOptions, progress: Progress) -> Report:
    """Measure, plan, write the file."""
    kafka = kafka_settings({"kafka.bootstrap.servers": options.bootstrap_servers}, is_sink=False)
    progress.tell("asking every broker how large its replicas are")
    with Client(kafka.client) as client:
        try:
            found = measure(client)
        except ClientError as error:
            raise unreachable(kafka, error) from error
    brokers, before, sizes = found.brokers, found.before, found.sizes
    if options.weights is not None:
        carried = read_weights(options.weights)
        sizes = {partition: carried.get(partition, 0) for partition in sizes}
    progress.tell(f"{len(before)} partitions on {len(brokers)} brokers")
    after = balanced(brokers, before, sizes, options.moves_max, racks=found.racks, fixed=set(found.moving))
    changed = {partition: replicas for partition, replicas in after.items() if replicas != before[partition]}
    Path(options.file).write_text(as_json(changed), encoding="utf-8")
    rows = [
        (
            broker,
            bytes_on(broker, before, sizes),
            bytes_on(broker, after, sizes),
            leaders_on(broker, before),
            leaders_on(broker, after),
        )
        for broker in brokers
    ]
    columns = ("broker", "bytes now", "bytes then", "leaders now", "leaders then")
    moves = sum(len(set(after[p]) - set(before[p])) for p in changed)
    headline = f"{len(changed)} partitions change, {moves} replicas move; the plan is in {options.file}"
    tables = [Table("brokers", columns, [*rows])]
    if found.moving:
        moving = [(str(partition), before[partition]) for partition in sorted(found.moving)]
        tables.insert(0, Table("on the move already, left as they will be", ("partition", "to"), [*moving]))
    return Report(headline, tables)


def read_weights(file: str) -> dict[TopicPartition, int]:
    """Bytes by partition, as the job hot writes them."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise refuse("weights", file, "there is no such file", "make it: `ottla pipeline run hot`") from None
    return offsets_json("weights", text)


def measure(client: Client) -> Measured:
    """Ask the cluster."""
    response = client.run(settled_topics, None)
    brokers = sorted(broker.node_id for broker in response.brokers)
    before = {
        TopicPartition(topic.name or "", row.partition_index): list(row.replica_nodes)
        for topic in response.topics
        for row in topic.partitions
    }
    ongoing = client.run(list_partition_reassignments)
    moving = [partition for partition in ongoing if partition in before]
    for partition in moving:
        leaving = ongoing[partition].removing_replicas
        before[partition] = [broker for broker in ongoing[partition].replicas if broker not in leaving]
    sizes = dict.fromkeys(before, 0)
    for results in client.run(describe_log_dirs, brokers).values():
        for directory in results:
            for topic in directory.topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    sizes[partition] = max(sizes.get(partition, 0), row.partition_size)
    return Measured(brokers, racks_of(response.brokers), before, moving, sizes)


def racks_of(brokers: Iterable[MetadataResponseBroker]) -> dict[int, str]:
    """Each broker's rack, if all have one."""
    racks = {broker.node_id: broker.rack for broker in brokers}
    known = {number: rack for number, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {}


def as_json(changed: Assignment) -> str:
    """Kafka's reassignment JSON."""
    rows = [{"topic": p.topic, "partition": p.partition, "replicas": r} for p, r in sorted(changed.items())]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"
