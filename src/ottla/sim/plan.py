"""What a seed means: a cluster's shape, and the faults that will strike it, all drawn beforehand.

A plan can be made smaller (fewer faults, fewer brokers, less time) and played again: that is how a failing
seed is shrunk.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from ottla.sim.world import MILLISECOND, SECOND

FAULT_SECONDS = 60
FAULTS_MIN = 14
"""Of those drawn for a minute; a fault that cannot happen at its time gives way to another."""


KEPT = {"retention.ms": "-1"}
"""For topics whose records must stay although a clock jumps by years."""

WRITTEN = "written-0"
"""Where transactional programs write."""
COPIES = "copies-0"
"""Where copiers bring what was committed there."""


class TopicKind(Enum):
    """What may happen to a topic's records, and so what may be asked of them in the end."""

    PLAIN = "plain"
    """Nothing is ever removed."""
    RETAINED = "retained"
    """Old segments go, and an operator deletes records."""
    COMPACTED = "compacted"
    """Only the newest record of a key is kept for sure."""
    UNCLEAN = "unclean"
    """A replica that is not in sync may be elected; what that costs must be announced."""


@dataclass(frozen=True)
class TopicShape:
    """One topic of the workload."""

    name: str
    kind: TopicKind
    partitions: int
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """What a run is made of."""

    brokers: int = 3
    topics: tuple[TopicShape, ...] = (TopicShape("topic-0", TopicKind.PLAIN, 2, KEPT),)
    replication_factor: int = 3
    min_insync_replicas: int = 2
    directories: int = 1
    producers: int = 2
    careless_producers: int = 0
    members: int = 0
    """Of the consumer group."""
    static_members: int = 0
    """How many of them are static members."""
    churns: bool = False
    """Topics come and go."""
    own_clients: bool = False
    """Programs on Ottla's own client take part."""
    own_members: int = 0
    """Of a consumer group on Ottla's own client."""
    writers: int = 0
    """Programs with transactional ids that write."""
    copiers: int = 0
    """Programs with transactional ids that copy what those have committed."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def all_topics(self) -> tuple[TopicShape, ...]:
        """With those that only transactional programs write to."""
        if not self.writers:
            return self.topics
        own = (TopicShape(name, TopicKind.PLAIN, 2, KEPT) for name in (WRITTEN, COPIES))
        return (*self.topics, *own)


@dataclass(frozen=True)
class Strike:
    """One fault: when, what, and the luck (which broker, how long) that it brings along."""

    number: int
    at_us: int
    kind: str
    luck: int


@dataclass(frozen=True)
class Plan:
    """Everything that a seed decides before it begins."""

    seed: int
    seconds: int
    shape: Shape
    strikes: tuple[Strike, ...]

    def keeping(self, numbers: tuple[int, ...]) -> "Plan":
        """The same with these faults alone."""
        return replace(self, strikes=tuple(each for each in self.strikes if each.number in numbers))

    def shorter(self, seconds: int) -> "Plan":
        """The same, ended earlier."""
        kept = tuple(each for each in self.strikes if each.at_us < seconds * SECOND)
        return replace(self, seconds=seconds, strikes=kept)

    def with_brokers(self, brokers: int) -> "Plan":
        return replace(self, shape=replace(self.shape, brokers=brokers))


def draw_plan(
    seed: int, kinds: tuple[str, ...], seconds: int = FAULT_SECONDS, a_minute: int | None = None
) -> Plan:
    """The plan of a seed; ``kinds`` are the faults there are, ``a_minute`` how many, if not drawn too."""
    shape = draw_shape(Random(f"{seed}/shape"))
    strikes = draw_strikes(Random(f"{seed}/faults"), kinds, seconds, a_minute)
    return Plan(seed, seconds, shape, strikes)


def draw_strikes(
    chance: Random, kinds: tuple[str, ...], seconds: int, a_minute: int | None = None
) -> tuple[Strike, ...]:
    """A swarm: each seed has a few kinds of fault only, some of them close upon each other."""
    chosen = sorted(chance.sample(kinds, chance.randint(min(4, len(kinds)), len(kinds))))
    drawn = chance.choice([FAULTS_MIN, FAULTS_MIN, 20, 30])
    a_minute = drawn if a_minute is None else a_minute
    count = max(1, a_minute * seconds // FAULT_SECONDS)
    times: list[int] = []
    for _ in range(count):
        if times and chance.random() < 0.35:
            times.append(times[-1] + chance.randint(0, 600) * MILLISECOND)
        else:
            times.append(chance.randrange(seconds * SECOND))
    due = sorted(min(at_us, seconds * SECOND - 1) for at_us in times)
    return tuple(
        Strike(number, at_us, chance.choice(chosen), chance.getrandbits(64))
        for number, at_us in enumerate(due, 1)
    )


def draw_shape(chance: Random) -> Shape:
    """Brokers, topics, clients and settings differ from seed to seed."""
    topics = [TopicShape("topic-0", TopicKind.PLAIN, chance.randint(1, 3), dict(KEPT))]
    for kind in (TopicKind.RETAINED, TopicKind.COMPACTED, TopicKind.UNCLEAN):
        if chance.random() < 0.25:
            topics.append(TopicShape(f"{kind.value}-0", kind, 1, _settings_of(kind, chance)))
    lag_ms = chance.choice([1_500, 3_000, 6_000])
    is_unclean = topics[-1].kind is TopicKind.UNCLEAN
    has_own = chance.random() < 0.4
    has_transactions = chance.random() < 0.5
    return Shape(
        brokers=chance.choice([3, 3, 3, 4, 5]),
        topics=tuple(topics),
        directories=chance.choice([1, 1, 2]),
        producers=chance.randint(2, 3),
        careless_producers=chance.choice([0, 0, 1]),
        members=chance.choice([0, 0, 2, 3]),
        static_members=chance.choice([0, 1, 3]),
        churns=chance.random() < 0.3,
        own_clients=has_own,
        own_members=chance.choice([0, 2, 3]) if has_own else 0,
        writers=chance.choice([1, 2, 3]) if has_transactions else 0,
        copiers=chance.choice([0, 2, 3]) if has_transactions else 0,
        settings={
            "replica.lag.time.max.ms": str(lag_ms),
            "replica.fetch.wait.max.ms": str(chance.choice([500, 1_000, lag_ms // 2])),
            "zookeeper.session.timeout.ms": str(chance.choice([1_000, 3_000])),
            "log.segment.bytes": str(chance.choice([2_048, 16_384, 1_073_741_824])),
            "num.replica.fetchers": str(chance.choice([1, 1, 2])),
            "auto.leader.rebalance.enable": chance.choice(["true", "false"]),
            "leader.imbalance.check.interval.seconds": "5",
            "ottla.decisions.enable": "true" if is_unclean or chance.random() < 0.2 else "false",
            "ottla.guard.enable": chance.choice(["true", "true", "false"]),
        },
    )


def _settings_of(kind: TopicKind, chance: Random) -> dict[str, str]:
    if kind is TopicKind.RETAINED:
        return {
            "segment.bytes": "1024",
            **chance.choice([{"retention.bytes": "4096"}, {"retention.ms": "15000"}]),
        }
    if kind is TopicKind.COMPACTED:
        return {
            "cleanup.policy": "compact",
            "segment.bytes": "1024",
            "min.cleanable.dirty.ratio": "0.05",
        }
    return {"unclean.leader.election.enable": "true", **KEPT}
