"""Slow work off the loop: the edge has threads for it."""

from collections.abc import Callable
from typing import Any

from ottla.broker.outputs import Output, RunInThread


class Threads:
    """Hands work to the edge's threads, and what came of it to whoever waits."""

    def __init__(self, outputs: list[Output]) -> None:
        self._outputs = outputs
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._next = 0

    def run(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do this off the loop; ``then`` gets what it returned, or the exception it raised."""
        self._next += 1
        self._waiting[self._next] = then
        self._outputs.append(RunInThread(self._next, work))

    def done(self, token: int, outcome: Any) -> None:
        """A thread finished."""
        self._waiting.pop(token)(outcome)
