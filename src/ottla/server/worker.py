"""Slow work in a few threads; its outcome comes back to the loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

THREADS_MAX = 4


class Worker:
    """Runs the node's slow work; outcomes are reported in the loop, an exception as the outcome itself."""

    __slots__ = ("_is_stopped", "_loop", "_pool", "_report")

    def __init__(self, loop: asyncio.AbstractEventLoop, report: Callable[[int, Any], None]) -> None:
        self._loop = loop
        self._report = report
        self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="ottla-worker")
        self._is_stopped = False

    def run(self, token: int, work: Callable[[], Any]) -> None:
        """Start it; ``report(token, outcome)`` follows."""
        self._pool.submit(self._do, token, work)

    def _do(self, token: int, work: Callable[[], Any]) -> None:
        try:
            outcome = work()
        except Exception as error:
            outcome = error
        if not self._is_stopped:
            self._loop.call_soon_threadsafe(self._done, token, outcome)

    def _done(self, token: int, outcome: Any) -> None:
        if not self._is_stopped:
            self._report(token, outcome)

    def stop(self) -> None:
        """Report nothing more; what runs ends by itself."""
        self._is_stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
