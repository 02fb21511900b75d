"""The cluster on one screen: what is read, and how it is laid out."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.shared.printing import joined, table
from ottla.cli.tools.groups_shown import read_lags
from ottla.cli.tools.topics_shown import ShownPartition, read_topics
from ottla.client.admin.groups import describe_group, list_groups
from ottla.client.blocking import Client
from ottla.client.engine.metadata import Broker
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition

ROWS_SHOWN = 10
"""Of partitions in trouble, and of groups."""
REFRESH_MS_MAX = 5_000
WORST_FIRST = ("offline", "under min ISR", "under-replicated", "reassigning", "not preferred")


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """What one broker does; without an address it is not alive."""

    number: int
    address: str | None
    rack: str | None
    leads: int
    preferred: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class GroupLine:
    """How far behind a group is."""

    name: str
    state: str
    members: int
    lag: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A picture of the cluster at one moment."""

    cluster_id: str
    controller: int
    controller_epoch: int | None
    topics: int
    partitions: int
    brokers: list[BrokerLine]
    counts: dict[str, int]
    troubles: dict[str, str]
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    isrs: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    groups: list[GroupLine] = field(default_factory=list)

    def lines(self, rows_max: int = ROWS_SHOWN) -> list[str]:
        """At most 80 columns, as long as names are not long."""
        epoch = "" if self.controller_epoch is None else f", epoch {self.controller_epoch}"
        controller = f"broker {self.controller}{epoch}" if self.controller >= 0 else "none"
        lines = [f"cluster {self.cluster_id}   controller: {controller}"]
        lines.append(f"{self.topics} topics, {self.partitions} partitions: {self._health()}")
        lines += ["", *table(("BROKER", "ADDRESS", "RACK", "LEADS", "PREFERRED", "REPLICAS", "IN-SYNC"), [
            (
                f"{row.number}{'*' if row.number == self.controller else ''}",
                row.address or "not alive",
                row.rack or "-",
                row.leads,
                row.preferred,
                row.replicas,
                row.in_sync,
            )
            for row in self.brokers
        ])]  # fmt: skip
        if self.troubles:
            lines += ["", *table(("PARTITION", "TROUBLE"), list(self.troubles.items())[:rows_max])]
            if len(self.troubles) > rows_max:
                lines.append(f"... and {len(self.troubles) - rows_max} more")
        if self.groups:
            rows = [(g.name, g.state, g.members, g.lag) for g in self.groups[:rows_max]]
            lines += ["", *table(("GROUP", "STATE", "MEMBERS", "LAG"), rows)]
            if len(self.groups) > rows_max:
                lines.append(f"... and {len(self.groups) - rows_max} more")
        return lines

    def _health(self) -> str:
        bad = [f"{count} {name}" for name, count in self.counts.items() if count]
        if not self.partitions:
            return "nothing to lead yet"
        return ", ".join(bad) or "all led by their preferred leader, all in sync"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "cluster_id": self.cluster_id,
            "controller": self.controller,
            "controller_epoch": self.controller_epoch,
            "topics": self.topics,
            "partitions": self.partitions,
            **{name.replace(" ", "_"): count for name, count in self.counts.items()},
            "brokers": [
                {
                    "broker": row.number,
                    "address": row.address,
                    "rack": row.rack,
                    "leads": row.leads,
                    "preferred": row.preferred,
                    "replicas": row.replicas,
                    "in_sync": row.in_sync,
                }
                for row in self.brokers
            ],
            "troubles": self.troubles,
            "groups": [
                {"group": g.name, "state": g.state, "members": g.members, "lag": g.lag} for g in self.groups
            ],
        }


def read_cluster(client: Client, *, controller_epoch: int | None) -> ClusterView:
    """Ask the cluster for all that the picture shows."""
    topics = read_topics(client)
    client.run(lambda engine: engine.refresh(engine.now_ms + REFRESH_MS_MAX))
    metadata = client.engine.metadata
    partitions = {TopicPartition(t.name, p.partition): p for t in topics for p in t.partitions}
    min_isr = {topic.name: topic.min_isr for topic in topics}
    live = metadata.brokers
    by_kind: dict[str, dict[str, str]] = {kind: {} for kind in WORST_FIRST}
    for name, partition in sorted(partitions.items()):
        kind, words = trouble(partition, min_isr[name.topic], frozenset(live))
        if kind:
            by_kind[kind][str(name)] = words
    return ClusterView(
        metadata.cluster_id or "?",
        metadata.controller_id,
        controller_epoch,
        len(topics),
        len(partitions),
        _brokers(partitions, live),
        {kind: len(found) for kind, found in by_kind.items() if found},
        {name: words for found in by_kind.values() for name, words in found.items()},
        {name: p.leader for name, p in partitions.items()},
        {name: p.isr for name, p in partitions.items()},
        _groups(client),
    )


def trouble(partition: ShownPartition, min_isr: int, live: frozenset[int]) -> tuple[str, str]:
    """The worst that is to be said of a partition, as a kind and in words; empty if there is nothing."""
    replicas, isr = joined(partition.replicas), joined(partition.isr)
    if partition.leader not in live:
        return "offline", f"no leader; replicas {replicas}, in sync {isr}"
    if partition.is_moving:
        return "reassigning", f"adding {joined(partition.adding)}, removing {joined(partition.removing)}"
    if len(partition.isr) < min_isr:
        return "under min ISR", f"in sync {isr} of {replicas}, min.insync.replicas {min_isr}"
    if len(partition.isr) < partition.replication_factor:
        return "under-replicated", f"in sync {isr} of {replicas}"
    if partition.leader != partition.replicas[0]:
        return "not preferred", f"led by {partition.leader}, preferred is {partition.replicas[0]}"
    return "", ""


def _brokers(partitions: dict[TopicPartition, ShownPartition], live: dict[int, Broker]) -> list[BrokerLine]:
    rows = partitions.values()
    leads = Counter(row.leader for row in rows)
    preferred = Counter(row.replicas[0] for row in rows if row.replicas)
    held = Counter(broker for row in rows for broker in row.replicas)
    in_sync = Counter(broker for row in rows for broker in row.isr)
    lines = []
    for number in sorted({*live, *held}):
        broker = live.get(number)
        address = None if broker is None else f"{broker.host}:{broker.port}"
        rack = None if broker is None else broker.rack
        lines.append(
            BrokerLine(number, address, rack, leads[number], preferred[number], held[number], in_sync[number])
        )
    return lines


def _groups(client: Client) -> list[GroupLine]:
    """Groups, the furthest behind first; one whose coordinator is away has no lag to show."""
    lines = []
    try:
        names = sorted(row.group_id for row in client.run(list_groups, timeout_ms=5_000))
        for name in names:
            group = client.run(describe_group, name, 5_000)
            lag = sum(row.lag or 0 for row in read_lags(client, group))
            lines.append(GroupLine(name, group.group_state, len(group.members), lag))
    except ClientError:
        pass
    return sorted(lines, key=lambda line: -line.lag)
