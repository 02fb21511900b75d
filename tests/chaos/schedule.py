"""Which faults come together, and when: rounds drawn from a shuffled deck, all from one seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from chaos.nemeses import ALONE, Fault


@dataclass(frozen=True, slots=True)
class Draw:
    """The kinds of one round, and how long it waits before the next."""

    kinds: tuple[str, ...]
    waits_until_whole: bool
    pause_s: float


class Deck:
    """Every kind comes before any comes again."""

    def __init__(self, kinds: Iterable[str], random: Random) -> None:
        self._kinds = sorted(kinds)
        self._random = random
        self._left: list[str] = []

    def draw(self) -> Draw:
        """One to three kinds; some only alone."""
        wanted = self._random.choices((1, 2, 3), (50, 35, 15))[0]
        kinds = [self._next()]
        while kinds[0] not in ALONE and len(kinds) < wanted:
            kind = self._next()
            if kind in ALONE or kind in kinds:
                self._left.append(kind)
                break
            kinds.append(kind)
        return Draw(tuple(kinds), self._random.random() < 0.7, self._random.uniform(0, 1.5))

    def _next(self) -> str:
        if not self._left:
            self._left = list(self._kinds)
            self._random.shuffle(self._left)
        return self._left.pop()


def play(
    faults: list[Fault],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Begin and undo the faults of one round, each at its time; returns when the last is undone."""
    began = now()
    steps: list[tuple[float, int, Fault, bool]] = [
        (fault.after_s, number, fault, True) for number, fault in enumerate(faults)
    ]
    while steps:
        steps.sort(key=lambda step: step[:2])
        due, number, fault, is_begin = steps.pop(0)
        sleep(max(0.0, began + due - now()))
        if is_begin:
            fault.inject()
            steps.append((now() - began + fault.hold_s, number, fault, False))
        else:
            fault.heal()
