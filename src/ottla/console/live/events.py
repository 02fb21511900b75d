"""One stream a tab: the number of the picture whenever it changes, at most four times a second."""

import asyncio
from collections.abc import AsyncIterator

from ottla.console.read.looker import Looker
from ottla.console.read.world import World

COALESCE_S = 0.25
BEAT_S = 10.0
"""Even when nothing changes: a lost tab is noticed, and the looker goes on looking."""


async def events(world: World, looker: Looker, number: int) -> AsyncIterator[bytes]:
    """Server-sent events for a page that shows the picture of this number."""
    looker.somebody_looks()
    yield b"retry: 1000\n\n"
    while True:
        try:
            number = await asyncio.wait_for(world.news(number), BEAT_S)
        except TimeoutError:
            looker.somebody_looks()
            yield b": still here\n\n"
            continue
        looker.somebody_looks()
        yield f"id: {number}\nevent: picture\ndata: {number}\n\n".encode()
        await asyncio.sleep(COALESCE_S)
