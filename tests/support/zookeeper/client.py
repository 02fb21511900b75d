"""Our ZooKeeper client in a test: what it heard, and a second client that changes things meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ottla.server.zookeeper.session import Notification, ZooKeeperClient
from ottla.zookeeper.ops import SessionEvent, WatchEvent, WatchKind

T = TypeVar("T")
LIMIT_S = 60.0


class Heard:
    """Everything the client told its listener, and a way to wait for more of it."""

    def __init__(self) -> None:
        self.events: list[Notification] = []
        self._news = asyncio.Event()

    def __call__(self, event: Notification) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, kind: type[T], count: int = 1) -> T:
        """The ``count``-th event of that kind; an AssertionError after the limit."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while len(found := [e for e in self.events if isinstance(e, kind)]) < count:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"waited for {kind.__name__}, heard {self.events}") from None
        return found[count - 1]

    @property
    def watches(self) -> list[tuple[WatchKind, str]]:
        """The watch events, in order."""
        return [(event.kind, event.path) for event in self.events if isinstance(event, WatchEvent)]

    @property
    def session(self) -> list[SessionEvent]:
        """The session events, in order."""
        return [event for event in self.events if not isinstance(event, WatchEvent)]


@asynccontextmanager
async def a_client(connect: str, **options: Any) -> AsyncIterator[tuple[ZooKeeperClient, Heard]]:
    """A connected client and what it hears; closed at the end."""
    heard = Heard()
    client = await ZooKeeperClient.connect(connect, listener=heard, **options)
    try:
        yield client, heard
    finally:
        await client.close()


async def eventually(condition: Callable[[], T | None], what: str) -> T:
    """The first true value of a condition that another process brings about."""
    give_up = asyncio.get_running_loop().time() + LIMIT_S
    while not (value := condition()):
        assert asyncio.get_running_loop().time() < give_up, f"waited in vain: {what}"
        await asyncio.sleep(0.01)
    return value
