"""May this broker leave? What a stop or a crash would do to each partition, by the controller's own rules."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ottla.controller.election import (
    Elected,
    Rule,
    elect_for_controlled_shutdown,
    elect_for_offline_partition,
)
from ottla.insight.picture import PartitionSeen, Picture, TopicSeen
from ottla.insight.wording import counted, named
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

OFFLINE, UNCLEAN, REFUSES_WRITES, LAST_IN_SYNC = "offline", "unclean", "refuses acks=all", "one left in sync"
WORST_FIRST = (OFFLINE, UNCLEAN, REFUSES_WRITES, LAST_IN_SYNC)
_NO, _MAYBE = (OFFLINE, UNCLEAN, REFUSES_WRITES), (LAST_IN_SYNC,)


class Objection(NamedTuple):
    """A partition that says no, or would have nothing to spare."""

    partition: str
    kind: str
    why: str


@dataclass(slots=True)
class Leaving:
    """What it would mean."""

    broker: int
    is_alive: bool
    replicas: int = 0
    leaders: int = 0
    is_controller: bool = False
    goes_to: Counter[int] = field(default_factory=Counter)
    """How many leaderships each other broker would take over."""
    group_coordinators: int = 0
    transaction_coordinators: int = 0
    objections: list[Objection] = field(default_factory=list)
    """The worst first."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def verdict(self) -> str:
        """``yes``, ``careful`` or ``no``; ``gone`` of a broker that is not alive."""
        if not self.is_alive:
            return "gone"
        if any(self.counts[kind] for kind in _NO):
            return "no"
        return "careful" if any(self.counts[kind] for kind in _MAYBE) else "yes"

    def sentence(self) -> str:
        """The answer."""
        match self.verdict:
            case "gone":
                return f"Broker {self.broker} is not alive."
            case "no":
                return f"No: {self._said(_NO)}."
            case "careful":
                return f"Yes, but {self._said(_MAYBE)}: the next failure would stop them."
            case _:
                return f"Yes: {counted(self.leaders, 'leadership')} would move, and no partition minds."

    def _said(self, kinds: tuple[str, ...]) -> str:
        words = {
            OFFLINE: "would be offline",
            UNCLEAN: "would lose records to an unclean election",
            REFUSES_WRITES: "would refuse writes with acks=all",
            LAST_IN_SYNC: "would have a single replica in sync",
        }
        return "; ".join(
            f"{counted(self.counts[kind], 'partition')} {words[kind]}"
            f" ({named([said.partition for said in self.objections if said.kind == kind])})"
            for kind in kinds
            if self.counts[kind]
        )


def may_leave(picture: Picture, broker: int, *, crash: bool = False) -> Leaving:
    """Ask every partition that has a replica there."""
    leaving = Leaving(broker, broker in picture.live, is_controller=picture.controller == broker)
    live = cast("frozenset[BrokerId]", picture.live)
    for name, seen in picture.partitions.items():
        if broker not in seen.replicas:
            continue
        leaving.replicas += 1
        if seen.leader == broker:
            leaving.leaders += 1
            leaving.group_coordinators += name.topic == OFFSETS_TOPIC
            leaving.transaction_coordinators += name.topic == TRANSACTIONS_TOPIC
        topic = picture.topics.get(name.topic) or TopicSeen(name.topic)
        _ask(leaving, live, name, seen, topic, crash=crash)
    order = {kind: place for place, kind in enumerate(WORST_FIRST)}
    leaving.objections.sort(key=lambda said: order[said.kind])
    leaving.counts.update(said.kind for said in leaving.objections)
    return leaving


def _ask(
    leaving: Leaving,
    live: frozenset[BrokerId],
    name: TopicPartition,
    seen: PartitionSeen,
    topic: TopicSeen,
    *,
    crash: bool,
) -> None:
    broker = leaving.broker
    if seen.leader not in live or broker not in seen.isr:
        return  # It is offline already, or does not count on this broker.
    isr: tuple[int, ...] = tuple(member for member in seen.isr if member != broker)
    if seen.leader == broker:
        elected = _elected(seen, broker, live, topic, crash=crash)
        if isinstance(elected, str):
            leaving.objections.append(Objection(str(name), OFFLINE, elected))
            return
        leaving.goes_to[elected.leader] += 1
        if elected.rule is Rule.UNCLEAN:
            why = f"broker {elected.leader} would lead without having been in sync"
            leaving.objections.append(Objection(str(name), UNCLEAN, why))
            return
        isr = elected.isr
    left = counted(len(isr), "replica")
    if len(isr) < topic.min_isr:
        why = f"{left} in sync would be left, min.insync.replicas is {topic.min_isr}"
        leaving.objections.append(Objection(str(name), REFUSES_WRITES, why))
    elif len(isr) == 1 and seen.replication_factor > 2:
        why = f"only broker {isr[0]} would be in sync"
        leaving.objections.append(Objection(str(name), LAST_IN_SYNC, why))


def _elected(
    seen: PartitionSeen, broker: int, online: frozenset[BrokerId], topic: TopicSeen, *, crash: bool
) -> Elected | str:
    """Who would lead, or why nobody would."""
    assignment = ReplicaAssignment(cast("tuple[BrokerId, ...]", seen.replicas))
    isr = cast("tuple[BrokerId, ...]", seen.isr)
    state = LeaderAndIsr(BrokerId(seen.leader), LeaderEpoch(max(0, seen.leader_epoch)), isr, 0, 0)
    if not crash:
        election = elect_for_controlled_shutdown(assignment, state, online, {BrokerId(broker)})
        if isinstance(election, Elected):
            return election
    # A clean stop that the controller cannot prepare for ends as a crash does.
    election = elect_for_offline_partition(
        assignment, state, online - {BrokerId(broker)}, unclean_allowed=topic.is_unclean_allowed
    )
    return election if isinstance(election, Elected) else election.why
