"""Moves of replicas: plans that even out or change a factor, and the throttle that goes with a plan."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.configs import Change, ConfigOperation, Resource, ResourceType
from ottla.insight.plan import CannotMove, Plan
from ottla.insight.wording import joined
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment

RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

Racks = Mapping[int, str | None]
"""The live brokers, each with its rack."""
Changes = dict[Resource, dict[str, Change]]
Moves = dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]
"""Who sends each partition, and who fetches it."""


def plan_even(present: Plan, racks: Racks) -> Plan:
    """The partitions that change so that every live broker holds and is first in about as many as the others.

    A replica moves from a broker with more to one with fewer, never into a rack that has the partition
    already; then replicas of a partition change places.
    """
    spread = sorted(present, key=lambda name: (name.partition, name.topic))  # Of every topic some.
    wanted = {name: list(present[name]) for name in spread}
    held = _counted(racks, (broker for replicas in wanted.values() for broker in replicas))
    low = sum(held[broker] for broker in racks) // (len(racks) or 1)
    while sum(_moved(replicas, held, low, racks) for replicas in wanted.values()):
        pass
    first = _counted(racks, (replicas[0] for replicas in wanted.values() if replicas))
    while sum(_led_by_another(replicas, first, racks) for replicas in wanted.values()):
        pass
    return {name: tuple(replicas) for name, replicas in wanted.items() if tuple(replicas) != present[name]}


def _moved(replicas: list[int], held: Counter[int], low: int, racks: Racks) -> bool:
    """A replica went from a broker above the even share to one below it, if there was such a pair."""
    for place, heavy in enumerate(replicas):
        free = [b for b in racks if b not in replicas and _fits(b, heavy, replicas, racks)]
        if heavy not in racks or not free:
            continue
        light = min(free, key=lambda broker: (held[broker], broker))
        if held[heavy] - held[light] > 1 and (held[light] < low or held[heavy] > low + 1):
            replicas[place] = light
            held[heavy] -= 1
            held[light] += 1
            return True
    return False


def _led_by_another(replicas: list[int], first: Counter[int], racks: Racks) -> bool:
    """Two replicas changed places, if the first one's broker is first far more often than the other's."""
    heir = min((b for b in replicas if b in racks), key=lambda b: first[b], default=None)
    if heir is None or replicas[0] not in racks or first[replicas[0]] - first[heir] < 2:
        return False
    place = replicas.index(heir)
    first[replicas[0]] -= 1
    first[heir] += 1
    replicas[0], replicas[place] = replicas[place], replicas[0]
    return True


def _fits(new: int, instead_of: int, replicas: Iterable[int], racks: Racks) -> bool:
    rack = racks[new]
    return rack is None or all(racks.get(broker) != rack for broker in replicas if broker != instead_of)


def plan_factor(present: Plan, factor: int, racks: Racks) -> Plan | CannotMove:
    """So many replicas each: new ones where there are fewest, in a rack without any if possible."""
    if factor > len(racks):
        return CannotMove(f"{factor} replicas need as many live brokers; there are {len(racks)}")
    held = _counted(racks, (broker for replicas in present.values() for broker in replicas))
    plan: Plan = {}
    for name, replicas in sorted(present.items()):
        now = list(replicas[:factor])
        while len(now) < factor:
            used = {racks.get(broker) for broker in now}
            free = [broker for broker in racks if broker not in now]
            if not free:
                return CannotMove(f"{name} has replicas on brokers that are not alive: bring them back first")
            now.append(min(free, key=lambda b: (racks[b] is not None and racks[b] in used, held[b], b)))
            held[now[-1]] += 1
        if tuple(now) != replicas:
            plan[name] = tuple(now)
    return plan


def _counted(racks: Racks, brokers: Iterable[int]) -> Counter[int]:
    counts: Counter[int] = Counter(dict.fromkeys(racks, 0))
    counts.update(brokers)
    return counts


def plan_from_text(text: str) -> Plan | CannotMove:
    """A plan as Kafka's tool reads it."""
    try:
        rows: Any = json.loads(text)["partitions"]
        plan: Plan = {}
        for row in rows:
            name, replicas = TopicPartition(str(row["topic"]), int(row["partition"])), row["replicas"]
            if (
                not replicas
                or len(set(replicas)) != len(replicas)
                or not all(type(r) is int for r in replicas)
            ):
                return CannotMove(f"{name} has no list of replicas, or names one twice")
            plan[name] = tuple(replicas)
    except (ValueError, TypeError, KeyError) as error:
        return CannotMove(
            'a plan is written {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}'
            f" ({type(error).__name__}: {error})"
        )
    return plan


# ---- the throttle


def throttled_moves(
    plan: Plan, present: Plan, under_way: Mapping[TopicPartition, OngoingPartitionReassignment]
) -> Moves:
    """The planned moves and those that go on: a topic's list of throttled replicas is set as a whole."""
    moves: Moves = {}
    for name, move in under_way.items():
        senders = tuple(broker for broker in move.replicas if broker not in move.adding_replicas)
        moves[name] = (senders, tuple(move.adding_replicas))
    for name, target in plan.items():
        # Of a partition that moves already, the holders include those that have nothing to send yet.
        senders = moves[name][0] if name in moves else present[name]
        moves[name] = (senders, tuple(broker for broker in target if broker not in senders))
    return moves


def throttle_changes(moves: Moves, rate: int, live: Iterable[int]) -> tuple[Changes, Changes]:
    """Old replicas send and new ones fetch no faster than this: changes of brokers, and then of topics."""
    sending: dict[str, list[str]] = {}
    fetching: dict[str, list[str]] = {}
    brokers: set[int] = set()
    for name, (senders, fetchers) in sorted(moves.items()):
        if fetchers:
            brokers.update(senders, fetchers)
            sending.setdefault(name.topic, []).extend(f"{name.partition}:{broker}" for broker in senders)
            fetching.setdefault(name.topic, []).extend(f"{name.partition}:{broker}" for broker in fetchers)
    limit: Change = (ConfigOperation.SET, str(rate))
    rates: Changes = {
        (ResourceType.BROKER, str(broker)): dict.fromkeys(RATES[:2], limit)
        for broker in sorted(brokers.intersection(live))
    }
    replicas: Changes = {
        (ResourceType.TOPIC, topic): {
            THROTTLED[0]: (ConfigOperation.SET, joined(sending[topic])),
            THROTTLED[1]: (ConfigOperation.SET, joined(fetching[topic])),
        }
        for topic in sending
    }
    return rates, replicas


def lifted_throttles(brokers: Iterable[int], topics: Iterable[str]) -> tuple[Changes, Changes]:
    """Without the throttles of these brokers and topics."""
    gone: Change = (ConfigOperation.DELETE, None)
    return (
        {(ResourceType.BROKER, str(broker)): dict.fromkeys(RATES, gone) for broker in sorted(brokers)},
        {(ResourceType.TOPIC, name): dict.fromkeys(THROTTLED, gone) for name in sorted(topics)},
    )
