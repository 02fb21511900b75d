"""Clients that do one thing after the other: the client's scheduler over the world's clock and network."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ottla.client.engine.tasks import Ask, Operation, Scheduler, Signal, Task, WaitFor
from ottla.sim.load.rpc import Rpc
from ottla.sim.world import World
from ottla.wire.fields import Request

T = TypeVar("T")
Script: TypeAlias = Operation[Any]


def ask(broker: int, request: Request, version: int) -> Ask:
    """Send this to a broker; yields the response, or None when it was lost."""
    return Ask(broker, request, None, version)


class Scripts(Scheduler):
    """Runs the scripts of one client; every step is taken as soon as the world has answered."""

    def __init__(self, world: World, rpc: Callable[[int], Rpc]) -> None:
        super().__init__(0)
        self._world = world
        self._rpc = rpc

    def play(self, script: Operation[T]) -> Task[T]:
        """Begin a script, which may take however long."""
        task = self.spawn(script)
        self.run()
        return task

    def wait(self, delay_us: int) -> WaitFor:
        """Let so much time pass; the world counts in microseconds."""
        passed = Signal()
        self._world.after(delay_us, partial(self._fire, passed))
        return WaitFor(passed)

    def _fire(self, signal: Signal) -> None:
        self.fire(signal)
        self.run()

    def on_ask(self, task: Task[Any], step: Ask) -> None:
        assert isinstance(step.target, int), "scripts name their broker"
        assert step.version_max is not None, "scripts name their version"
        self._rpc(step.target).ask(step.message, step.version_max, partial(self._answered, task, task.turn))

    def _answered(self, task: Task[Any], turn: int, response: Any) -> None:
        self.resume(task, turn, response)
        self.run()
