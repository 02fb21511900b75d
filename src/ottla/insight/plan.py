"""Plans of reassignments: what a drain would move, how much that is, and how far it has come."""

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.insight.wording import joined, size_text, table
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment

Plan = dict[TopicPartition, tuple[int, ...]]
Sizes = Mapping[tuple[TopicPartition, int], int]
"""Bytes by partition and broker."""

PACE_S = 15.0
"""The pace is that of so many last seconds: throttled replicas fetch in bursts."""
BAR_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class CannotMove:
    """Why there is no plan, with the next step."""

    why: str


def plan_text(plan: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    """A plan as Kafka's tool writes it."""
    rows = [
        {
            "topic": name.topic,
            "partition": name.partition,
            "replicas": list(replicas),
            "log_dirs": ["any"] * len(replicas),
        }
        for name, replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"))


def plan_drain(present: Plan, broker: int, live: list[int]) -> Plan | CannotMove:
    """Replace the broker by the one with the fewest replicas, or the fewest preferred ones where it led.

    All other replicas keep their place in the order. A partition that is already on all other live brokers
    would have one replica less: that is refused.
    """
    others = [number for number in live if number != broker]
    held = Counter(number for replicas in present.values() for number in replicas)
    first = Counter(replicas[0] for replicas in present.values() if replicas)
    plan: Plan = {}
    for name, replicas in sorted(present.items()):
        if broker not in replicas:
            continue
        free = [number for number in others if number not in replicas]
        if not free:
            return CannotMove(
                f"{name} has {len(replicas)} replicas and there are only {len(others)} other live brokers:"
                " add a broker first, or lower its replication factor with `ottla reassign-partitions`"
            )
        counts = (first, held) if replicas[0] == broker else (held, first)
        chosen = min(free, key=lambda number: (counts[0][number], counts[1][number], number))
        held[chosen] += 1
        first[chosen] += replicas[0] == broker
        plan[name] = tuple(chosen if number == broker else number for number in replicas)
    return plan


def moves_away_from(broker: int, under_way: Mapping[TopicPartition, OngoingPartitionReassignment]) -> Plan:
    """What an earlier call began: moves that take replicas from this broker, each with where it leads."""
    return {
        name: tuple(number for number in move.replicas if number not in move.removing_replicas)
        for name, move in under_way.items()
        if broker in move.removing_replicas
    }


@dataclass(frozen=True, slots=True)
class Move:
    """What a plan does to one partition."""

    partition: TopicPartition
    now: tuple[int, ...]
    then: tuple[int, ...]
    bytes: int

    def row(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "now": self.now,
            "then": self.then,
            "bytes": self.bytes,
        }


def rehearsed(plan: Plan, present: Plan, sizes: Sizes) -> list[Move]:
    """What a plan would do: new replicas copy as much as the largest replica has."""
    moves = []
    for name, wanted in sorted(plan.items()):
        new = [broker for broker in wanted if broker not in present[name]]
        size = max((sizes.get((name, broker), 0) for broker in present[name]), default=0)
        moves.append(Move(name, present[name], wanted, size * len(new)))
    return moves


def rehearsal_lines(moves: Iterable[Move], throttle: int) -> list[str]:
    """The rehearsal as a table, with the bytes and the time at the throttle below it."""
    moves = list(moves)
    rows = [
        (
            str(move.partition),
            joined(move.now),
            joined(move.then),
            "stays" if move.then == move.now else size_text(move.bytes),
        )
        for move in moves
    ]
    total = sum(move.bytes for move in moves)
    least = f", at least {total / throttle:.0f} s at {size_text(throttle)}/s" if throttle > 0 else ""
    return [
        *table(("PARTITION", "NOW", "THEN", "BYTES"), rows),
        f"{size_text(total)} would be copied{least}; nothing was changed",
    ]


def bytes_left(adding: Mapping[TopicPartition, tuple[int, ...]], sizes: Sizes) -> int:
    """What replicas that are being added still have to fetch."""
    full: dict[TopicPartition, int] = {}
    for (name, _), size in sizes.items():
        full[name] = max(size, full.get(name, 0))
    return sum(
        max(0, full.get(name, 0) - sizes.get((name, broker), 0))
        for name, brokers in adding.items()
        for broker in brokers
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """What is left, and how long it takes at the present pace."""

    partitions: int
    bytes_left: int
    bytes_per_s: float
    bytes_all: int = 0

    def bar(self) -> str:
        """``[#####.....] ``, or nothing when there was nothing to fetch."""
        if not self.partitions or not self.bytes_all:
            return ""
        done = BAR_COLUMNS * (self.bytes_all - self.bytes_left) // self.bytes_all
        return f"[{'#' * done}{'.' * (BAR_COLUMNS - done)}] "

    def __str__(self) -> str:
        if self.partitions == 0:
            return "all partitions are moved"
        pace = f", {size_text(self.bytes_per_s)}/s" if self.bytes_per_s > 0 else ""
        eta = f", about {self.bytes_left / self.bytes_per_s:.0f} s left" if self.bytes_per_s > 0 else ""
        return f"{self.partitions} partitions move, {size_text(self.bytes_left)} to fetch{pace}{eta}"


class Pace:
    """How fast bytes come, from what was left at the last looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self.bytes_all = 0
        """The most that ever was left."""

    def progress(self, now: float, partitions: int, bytes_left: int) -> Progress:
        self.bytes_all = max(self.bytes_all, bytes_left)
        self._looks.append((now, bytes_left))
        while self._looks[0][0] < now - PACE_S:
            self._looks.popleft()
        then, left = self._looks[0]
        pace = (left - bytes_left) / (now - then) if now > then else 0.0
        return Progress(partitions, bytes_left, pace, self.bytes_all)
