"""Clients that do one thing after the other: a generator asks and waits, the world answers in its time."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ottla.sim.rpc import Rpc
from ottla.sim.world import World
from ottla.wire.fields import Request, Response


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this to a broker; yields the response, or None when it was lost."""

    broker: int
    request: Request
    version: int
    answer: type[Response]


@dataclass(frozen=True, slots=True)
class Wait:
    """Let so much time pass."""

    delay_us: int


Script: TypeAlias = Generator[Ask | Wait, Any, Any]


class Player(Protocol):
    """Who plays scripts."""

    world: World

    def rpc(self, broker: int) -> Rpc: ...


def play(player: Player, script: Script, done: Callable[[Any], None] | None = None) -> None:
    """Run a script to its end, however long that takes."""

    def step(value: Any) -> None:
        try:
            wish = script.send(value)
        except StopIteration as end:
            if done is not None:
                done(end.value)
            return
        match wish:
            case Ask():
                player.rpc(wish.broker).ask(wish.request, wish.version, wish.answer, step)
            case Wait():
                player.world.after(wish.delay_us, lambda: step(None))

    step(None)
