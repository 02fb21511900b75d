"""The cluster on one screen: what each broker does, what is wrong, who is behind."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ottla.insight.picture import PartitionSeen, Picture
from ottla.insight.wording import joined, table

ROWS_SHOWN = 10
"""Of partitions in trouble, and of groups."""
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
    """A picture, with what it means."""

    picture: Picture
    brokers: list[BrokerLine]
    counts: dict[str, int]
    troubles: dict[str, str]
    groups: list[GroupLine] = field(default_factory=list)

    @property
    def partitions(self) -> int:
        return len(self.picture.partitions)

    def lines(self, rows_max: int = ROWS_SHOWN) -> list[str]:
        """At most 80 columns, as long as names are not long."""
        epoch = "" if self.picture.controller_epoch is None else f", epoch {self.picture.controller_epoch}"
        controller = f"broker {self.picture.controller}{epoch}" if self.picture.controller >= 0 else "none"
        lines = [f"cluster {self.picture.cluster_id}   controller: {controller}"]
        lines.append(f"{len(self.picture.topics)} topics, {self.partitions} partitions: {self.health()}")
        lines += ["", *table(("BROKER", "ADDRESS", "RACK", "LEADS", "PREFERRED", "REPLICAS", "IN-SYNC"), [
            (
                f"{row.number}{'*' if row.number == self.picture.controller else ''}",
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

    def health(self) -> str:
        """What is wrong, counted; or that nothing is."""
        bad = [f"{count} {name}" for name, count in self.counts.items() if count]
        if not self.partitions:
            return "nothing to lead yet"
        return ", ".join(bad) or "all led by their preferred leader, all in sync"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "cluster_id": self.picture.cluster_id,
            "controller": self.picture.controller,
            "controller_epoch": self.picture.controller_epoch,
            "topics": len(self.picture.topics),
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


def overview(picture: Picture, groups: Iterable[GroupLine] = ()) -> ClusterView:
    """A picture on one screen; the groups that are furthest behind come first."""
    live = picture.live
    by_kind: dict[str, dict[str, str]] = {kind: {} for kind in WORST_FIRST}
    for name, partition in sorted(picture.partitions.items()):
        kind, words = trouble(partition, picture.topics[name.topic].min_isr, live)
        if kind:
            by_kind[kind][str(name)] = words
    return ClusterView(
        picture,
        broker_lines(picture),
        {kind: len(found) for kind, found in by_kind.items() if found},
        {name: words for found in by_kind.values() for name, words in found.items()},
        sorted(groups, key=lambda line: -line.lag),
    )


def trouble(partition: PartitionSeen, min_isr: int, live: frozenset[int]) -> tuple[str, str]:
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


def broker_lines(picture: Picture) -> list[BrokerLine]:
    """What each broker does, and each that holds replicas and is not alive."""
    rows = picture.partitions.values()
    leads = Counter(row.leader for row in rows)
    preferred = Counter(row.replicas[0] for row in rows if row.replicas)
    held = Counter(broker for row in rows for broker in row.replicas)
    in_sync = Counter(broker for row in rows for broker in row.isr)
    lines = []
    for number in sorted({*picture.brokers, *held}):
        broker = picture.brokers.get(number)
        address = None if broker is None else broker.address
        rack = None if broker is None else broker.rack
        lines.append(
            BrokerLine(number, address, rack, leads[number], preferred[number], held[number], in_sync[number])
        )
    return lines
