"""``ottla topics --list`` and ``--describe``: what they read and how Kafka prints it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import typer

from ottla.cli.shared.options import Output, pattern
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.tools.topics.change import matching
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.insight.picture import PartitionSeen
from ottla.insight.read.cluster import moves_under_way, topic_seen, topic_settings
from ottla.insight.wording import joined
from ottla.model.ids import TopicId, TopicPartition, topic_id_from_text, topic_id_text

COLUMNS = ("topic", "topic_id", "partition", "leader", "replicas", "isr", "adding", "removing", "configs")


@dataclass(frozen=True, slots=True)
class ShownTopic:
    """What is described of a topic."""

    name: str
    topic_id: TopicId
    configs: dict[str, str]
    min_isr: int
    partitions: list[PartitionSeen] = field(default_factory=list)

    def lines(self, chosen: str | None, live: frozenset[int]) -> Iterator[str]:
        """Kafka's lines; ``chosen`` is the flag that narrows them."""
        if chosen == "--topics-with-overrides":
            if self.configs:
                yield self.header()
            return
        if chosen is None:
            yield self.header()
        for partition in self.partitions:
            if is_wanted(partition, chosen, self.min_isr, live):
                yield self.line(partition)

    def header(self) -> str:
        configs = ",".join(f"{name}={value}" for name, value in self.configs.items())
        topic_id = f"\tTopicId: {topic_id_text(self.topic_id)}" if any(self.topic_id) else ""
        factor = self.partitions[0].replication_factor if self.partitions else 0
        count = len(self.partitions)
        return (
            f"Topic: {self.name}{topic_id}\tPartitionCount: {count}\tReplicationFactor: {factor}"
            f"\tConfigs: {configs}"
        )

    def line(self, partition: PartitionSeen) -> str:
        leader = "none" if partition.leader < 0 else partition.leader
        moving = (
            f"\tAdding Replicas: {joined(partition.adding)}\tRemoving Replicas: {joined(partition.removing)}"
            if partition.is_moving
            else ""
        )
        return (
            f"\tTopic: {self.name}\tPartition: {partition.partition}\tLeader: {leader}"
            f"\tReplicas: {joined(partition.replicas)}\tIsr: {joined(partition.isr)}{moving}"
            "\tElr: N/A\tLastKnownElr: N/A"
        )

    def rows(self, chosen: str | None, live: frozenset[int]) -> list[dict[str, Any]]:
        """The same for programs."""
        return [
            dict(
                zip(
                    COLUMNS,
                    (
                        self.name,
                        topic_id_text(self.topic_id),
                        partition.partition,
                        partition.leader,
                        partition.replicas,
                        partition.isr,
                        partition.adding,
                        partition.removing,
                        self.configs,
                    ),
                    strict=True,
                )
            )
            for partition in self.partitions
            if is_wanted(partition, chosen, self.min_isr, live)
        ]


def is_wanted(partition: PartitionSeen, chosen: str | None, min_isr: int, live: frozenset[int]) -> bool:
    """Whether a narrowing flag lets a partition through."""
    match chosen:
        case "--under-replicated-partitions":
            return len(partition.isr) < partition.replication_factor
        case "--unavailable-partitions":
            return partition.leader not in live
        case "--under-min-isr-partitions":
            return len(partition.isr) < min_isr
        case "--at-min-isr-partitions":
            return len(partition.isr) == min_isr
        case _:
            return True


def list_topics(client: Client, expression: str | None, exclude_internal: bool, output: Output) -> None:
    """Names, sorted."""
    found = client.run(describe_topics).topics
    wanted = None if expression is None else pattern("--topic", expression)
    names = sorted(
        row.name
        for row in found
        if row.name is not None
        and (wanted is None or wanted.fullmatch(row.name))
        and not (exclude_internal and row.is_internal)
    )
    if output is not Output.TABLE:
        print_rows([{"topic": name} for name in names], output, ["topic"])
    elif names:
        typer.echo("\n".join(names))


def describe(
    client: Client,
    expression: str | None,
    topic_id: str | None,
    exclude_internal: bool,
    if_exists: bool,
    chosen: str | None,
    output: Output,
) -> None:
    """What the cluster says of topics."""
    shown = read_topics(client, expression, topic_id, exclude_internal, if_exists)
    live = frozenset(client.engine.metadata.brokers)
    if output is not Output.TABLE:
        print_rows([row for topic in shown for row in topic.rows(chosen, live)], output, COLUMNS)
        return
    lines = [line for topic in shown for line in topic.lines(chosen, live)]
    if lines:
        typer.echo("\n".join(lines))


def read_topics(
    client: Client,
    expression: str | None = None,
    topic_id: str | None = None,
    exclude_internal: bool = False,
    if_exists: bool = False,
) -> list[ShownTopic]:
    """Topics with settings and reassignments."""
    found = {row.name: row for row in client.run(describe_topics).topics if row.name is not None}
    names = sorted(found) if expression is None else matching(list(found), expression, if_exists)
    if topic_id is not None:
        wanted = _parsed(topic_id)
        names = [name for name in names if found[name].topic_id == wanted]
        if not names and not if_exists:
            raise CommandRefused(f"TopicId '{topic_id}' does not exist as expected")
    if exclude_internal:
        names = [name for name in names if not found[name].is_internal]
    if not names:
        return []
    configs = client.run(topic_settings, names)
    moving = client.run(moves_under_way)
    shown = []
    for name in names:
        all_configs = configs.get(name, {})
        seen = topic_seen(name, found[name].topic_id, all_configs)
        topic = ShownTopic(name, TopicId(seen.topic_id), dict(seen.configs), seen.min_isr)
        for row in sorted(found[name].partitions, key=lambda row: row.partition_index):
            move = moving.get(TopicPartition(name, row.partition_index))
            topic.partitions.append(
                PartitionSeen(
                    row.partition_index,
                    row.leader_id,
                    row.replica_nodes,
                    row.isr_nodes,
                    move.adding_replicas if move is not None else (),
                    move.removing_replicas if move is not None else (),
                )
            )
        shown.append(topic)
    return shown


def _parsed(text: str) -> TopicId:
    try:
        return topic_id_from_text(text)
    except ValueError as error:
        raise CommandRefused(str(error)) from None
