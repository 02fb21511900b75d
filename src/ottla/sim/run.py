"""One seed: a cluster, its clients and its faults, and what came of it."""

from collections import Counter
from dataclasses import dataclass, field

from ottla.sim.cluster import Cluster, Shape
from ottla.sim.nemesis import Nemesis
from ottla.sim.world import SECOND, World

FAULT_SECONDS = 60


@dataclass
class Outcome:
    """What a seed showed."""

    seed: int
    virtual_seconds: float
    events: int
    acknowledged: int
    read: int
    faults: Counter[str]
    trace: str
    failure: str | None = None
    story: list[str] = field(default_factory=list)


def draw_shape(world: World) -> Shape:
    """Brokers, partitions and settings differ from seed to seed."""
    brokers = world.chance.choice([3, 3, 4, 5])
    return Shape(
        brokers=brokers,
        topics=world.between(1, 2),
        partitions=world.between(1, 4),
        replication_factor=3,
        min_insync_replicas=2,
        settings={
            "replica.lag.time.max.ms": str(world.chance.choice([1_000, 2_000, 4_000])),
            "zookeeper.session.timeout.ms": str(world.chance.choice([1_000, 3_000])),
            "log.segment.bytes": str(world.chance.choice([2_048, 16_384, 1_073_741_824])),
            "num.replica.fetchers": str(world.chance.choice([1, 2])),
            "auto.leader.rebalance.enable": world.chance.choice(["true", "false"]),
            "leader.imbalance.check.interval.seconds": "5",
        },
    )


def run_seed(seed: int, fault_seconds: int = FAULT_SECONDS, listener: object = None) -> Outcome:
    """Play a seed to its end; a broken promise is in the outcome, not raised."""
    world = World(seed)
    if callable(listener):
        world.listener = listener
    cluster = Cluster(world, draw_shape(world))
    nemesis = Nemesis(cluster)
    failure: str | None = None
    try:
        cluster.start()
        cluster.start_clients(producers=world.between(2, 5))
        nemesis.begin()
        world.run_until(world.now_us + fault_seconds * SECOND)
        nemesis.is_over = True
        cluster.heal()
        cluster.check_end()
    except AssertionError as broken:
        failure = f"{type(broken).__name__}: {broken}"
        world.tell(failure)
    return Outcome(
        seed=seed,
        virtual_seconds=world.now_us / SECOND,
        events=world.events,
        acknowledged=cluster.history.acknowledged,
        read=cluster.history.read,
        faults=nemesis.injected,
        trace=world.trace_hash(),
        failure=failure,
        story=world.story,
    )
