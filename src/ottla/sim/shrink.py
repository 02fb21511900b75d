"""A failing plan made smaller: fewer faults, less time, fewer brokers, less of a workload."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from ottla.sim.plan import Plan, Shape

Fails = Callable[[Plan], str | None]
"""Plays a plan; how it failed, or None."""

RUNS_MAX = 250
LESS: dict[str, Callable[[Shape], Shape]] = {
    "group": lambda shape: replace(shape, members=0),
    "static": lambda shape: replace(shape, static_members=0),
    "churn": lambda shape: replace(shape, churns=False),
    "careless": lambda shape: replace(shape, careless_producers=0),
    "topics": lambda shape: replace(shape, topics=shape.topics[:1]),
    "copiers": lambda shape: replace(shape, copiers=0),
    "transactions": lambda shape: replace(shape, writers=0, copiers=0),
    "directories": lambda shape: replace(shape, directories=1),
}
"""What a workload can do without."""


def without(plan: Plan, parts: tuple[str, ...]) -> Plan:
    """The plan with parts of its workload left out."""
    shape = plan.shape
    for part in parts:
        shape = LESS[part](shape)
    return replace(plan, shape=shape)


class Shrinker:
    """Tries smaller plans as long as they fail in the same way."""

    def __init__(self, plan: Plan, failure: str, fails: Fails, tell: Callable[[str], None]) -> None:
        self.plan = plan
        self.failure = failure
        self.left_out: list[str] = []
        self.runs = 0
        self._fails = fails
        self._tell = tell

    def shrink(self) -> Plan:
        """The smallest plan found; every step of it failed like the first."""
        self._shorten()
        self._drop_faults()
        if self.plan.shape.brokers > 3:
            self._try(self.plan.with_brokers(3), "3 brokers")
        for part in LESS:
            smaller = without(self.plan, (part,))
            if smaller != self.plan and self._try(smaller, f"without {part}"):
                self.left_out.append(part)
        self._drop_faults()
        self._shorten()
        return self.plan

    def _try(self, plan: Plan, how: str) -> bool:
        if self.runs >= RUNS_MAX:
            return False
        self.runs += 1
        failure = self._fails(plan)
        if failure is None or kind_of(failure) != kind_of(self.failure):
            return False
        self.plan, self.failure = plan, failure
        self._tell(f"still fails: {how} ({len(plan.strikes)} faults, {plan.seconds} s)")
        return True

    def _shorten(self) -> None:
        """Halve the time while that fails, then take single seconds off."""
        step = self.plan.seconds // 2
        while step > 0:
            seconds = self.plan.seconds - step
            if seconds < 1 or not self._try(self.plan.shorter(seconds), f"{seconds} s"):
                step //= 2

    def _drop_faults(self) -> None:
        """Leave out halves, then quarters, down to single faults (ddmin)."""
        parts = 2
        while self.plan.strikes:
            for rest in _rests([strike.number for strike in self.plan.strikes], parts):
                if self._try(self.plan.keeping(rest), f"faults {', '.join(map(str, rest)) or 'none'}"):
                    parts = max(2, parts - 1)
                    break
            else:
                if parts >= len(self.plan.strikes):
                    return
                parts = min(len(self.plan.strikes), parts * 2)


def _rests(numbers: list[int], parts: int) -> Iterator[tuple[int, ...]]:
    """The numbers without each of so many parts of them."""
    size = -(-len(numbers) // parts)
    for start in range(0, len(numbers), size):
        yield tuple(numbers[:start] + numbers[start + size :])


def kind_of(failure: str) -> str:
    """What two failures have in common when they are the same: the words before the particulars."""
    kind, _, rest = failure.partition(": ")
    return f"{kind}: {rest.partition(':')[0].split(' ')[0]}"
