"""A console without brokers: its picture stands, and its client answers what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.config import ClientConfig
from ottla.console.app import Console
from ottla.console.guard.token import Token
from ottla.console.read.groups import Groups

TOKEN = Token("s" * 32, 8092)


class StandingGroups(Groups):
    """Nothing more will be read of groups."""

    async def await_round(self, *, all_partitions: bool = False) -> None:
        pass


class SaidClient:
    """Answers operations by their names; what was asked is kept."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    async def run(self, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = operation.__name__
        self.asked.append((name, args, kwargs))
        answer = self.answers[name]
        return answer(*args, **kwargs) if callable(answer) else answer

    def times(self, name: str) -> int:
        """How often an operation was asked for."""
        return sum(row[0] == name for row in self.asked)


class StandingLooker:
    """There is a picture already, or there never will be one."""

    def __init__(self, client: SaidClient | None = None) -> None:
        self.client = client

    def somebody_looks(self) -> None:
        pass

    def look_soon(self) -> None:
        pass

    async def await_picture(self) -> None:
        pass


def a_standing_console(
    client: SaidClient | None = None, allowed: tuple[str, ...] = (), log: Callable[[str], None] = print
) -> Console:
    """Nothing is seen yet: the test says what."""
    console = Console(ClientConfig(bootstrap_servers=(("h", 1),)), TOKEN, allowed, log)
    console.looker = StandingLooker(client)  # type: ignore[assignment]
    console.groups = StandingGroups(console.world)
    return console
