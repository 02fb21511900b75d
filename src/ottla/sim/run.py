"""One seed: a cluster, its clients and its faults, and what came of it."""

import gc
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.broker.controlling.steps import TermEnded
from ottla.model.errors import InvariantBroken, LogDirectoryFailed, MalformedRequest
from ottla.sim.cluster import Cluster
from ottla.sim.faults.nemesis import KINDS, Nemesis
from ottla.sim.plan import FAULT_SECONDS, Plan, draw_plan
from ottla.sim.truth.ending import Ending
from ottla.sim.truth.history import Violation
from ottla.sim.world import SECOND, World

CRASHES = (
    AssertionError,
    ArithmeticError,
    AttributeError,
    InvariantBroken,
    LogDirectoryFailed,
    LookupError,
    MalformedRequest,
    OSError,
    RuntimeError,
    TermEnded,
    TypeError,
    ValueError,
)
"""What a broken promise, or broken code, may raise."""


@dataclass
class Outcome:
    """What a seed showed."""

    seed: int
    virtual_seconds: float
    events: int
    acknowledged: int
    read: int
    commits: int
    faults: Counter[str]
    calls: Counter[str]
    trace: str
    elections: int = 0
    transactions: int = 0
    """Committed ones, as far as their programs were told."""
    failure: str | None = None
    story: list[str] = field(default_factory=list)


def _place(error: BaseException) -> str:
    """Where code broke, innermost last."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " > ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)


def plan_of(seed: int, seconds: int = FAULT_SECONDS) -> Plan:
    """What the seed decides."""
    return draw_plan(seed, KINDS, seconds)


def run_seed(
    seed: int, seconds: int = FAULT_SECONDS, listener: Callable[[str], None] | None = None
) -> Outcome:
    """Play a seed to its end; a broken promise is in the outcome, not raised."""
    return run_plan(plan_of(seed, seconds), listener)


def run_plan(plan: Plan, listener: Callable[[str], None] | None = None) -> Outcome:
    """Play a plan to its end. Garbage is collected once, at the end: a run makes much of it, and is short.

    Objects from before the run are left out of that collection.
    """
    was_collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        return _play(plan, listener)
    finally:
        if was_collecting:
            gc.enable()
        gc.collect()
        gc.unfreeze()


def _play(plan: Plan, listener: Callable[[str], None] | None) -> Outcome:
    world = World(plan.seed)
    world.listener = listener
    cluster = Cluster(world, plan.shape)
    nemesis = Nemesis(cluster, plan.strikes)
    failure: str | None = None
    try:
        cluster.start()
        cluster.start_clients()
        nemesis.begin()
        world.run_until(world.now_us + plan.seconds * SECOND)
        nemesis.is_over = True
        ending = Ending(cluster)
        ending.heal()
        ending.check()
    except CRASHES as broken:
        failure = f"{type(broken).__name__}: {broken}"
        if not isinstance(broken, Violation):
            failure += f" in {_place(broken)}"
        world.tell(failure)
    return Outcome(
        seed=plan.seed,
        virtual_seconds=world.now_us / SECOND,
        events=world.events,
        acknowledged=cluster.history.acknowledged,
        read=cluster.history.read,
        commits=cluster.group.commits,
        transactions=cluster.transaction_truth.commits,
        faults=nemesis.injected,
        calls=cluster.calls(),
        trace=world.trace_hash(),
        elections=cluster.znodes.elections,
        failure=failure,
        story=world.story,
    )
