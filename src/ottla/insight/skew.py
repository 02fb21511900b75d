"""Who does more than an even share: leaders, replicas, bytes by broker; racks that hold a partition twice."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.insight.picture import Picture
from ottla.insight.plan import Sizes
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Share:
    """One broker's part."""

    broker: int
    rack: str | None
    leaders: int
    preferred: int
    replicas: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Skew:
    """The parts, what would be even, and what stands in the way."""

    shares: list[Share]
    leaders_even: float
    replicas_even: float
    bytes_even: float | None
    not_preferred: int
    """Partitions that another than the first replica leads, though the first could."""
    racks_violated: list[str]
    """Partitions with two replicas in one rack while another rack has none."""

    def leader_skew(self) -> float:
        """How far the broker with the most leaders lies above the even share: 0.5 is half as many again."""
        most = max((share.leaders for share in self.shares), default=0)
        return most / self.leaders_even - 1 if self.leaders_even else 0.0


def skew_of(picture: Picture, sizes: Sizes | None = None) -> Skew:
    """All brokers that are alive."""
    rows = picture.partitions
    leaders = Counter(row.leader for row in rows.values())
    preferred = Counter(row.replicas[0] for row in rows.values() if row.replicas)
    replicas = Counter(broker for row in rows.values() for broker in row.replicas)
    held: Counter[int] = Counter()
    for (_, broker), size in (sizes or {}).items():
        held[broker] += size
    shares = [
        Share(
            number,
            broker.rack,
            leaders[number],
            preferred[number],
            replicas[number],
            held[number] if sizes is not None else None,
        )
        for number, broker in sorted(picture.brokers.items())
    ]
    count = len(shares) or 1
    return Skew(
        shares,
        len(rows) / count,
        sum(len(row.replicas) for row in rows.values()) / count,
        sum(held.values()) / count if sizes is not None else None,
        sum(not why for why in preferred_elections(picture).values()),
        sorted(_violations({n: row.replicas for n, row in rows.items()}, picture)),
    )


def _violations(replicas: Mapping[TopicPartition, tuple[int, ...]], picture: Picture) -> list[str]:
    racks = {number: broker.rack for number, broker in picture.brokers.items()}
    known = {rack for rack in racks.values() if rack is not None}
    if len(known) < 2:
        return []
    found = []
    for name, holders in replicas.items():
        used = [racks[broker] for broker in holders if racks.get(broker) is not None]
        if len(set(used)) < min(len(used), len(known)):
            found.append(str(name))
    return found


def preferred_elections(picture: Picture) -> dict[TopicPartition, str]:
    """Partitions that another than the first replica leads: why that one cannot; empty if it can."""
    found = {}
    for name, row in sorted(picture.partitions.items()):
        if not row.replicas or row.leader == row.replicas[0]:
            continue
        first = row.replicas[0]
        if first not in picture.live:
            found[name] = f"broker {first} is not alive"
        else:
            found[name] = "" if first in row.isr else f"broker {first} is not in sync"
    return found
