"""Ticks: one scheduled call at the node's nearest deadline, instead of one per timer."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Ticker:
    """Keeps one scheduled call at or before the nearest deadline."""

    __slots__ = ("_clock", "_deadline_ms", "_handle", "_loop", "_tick")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: SystemClock, tick: Callable[[], None]) -> None:
        self._loop = loop
        self._clock = clock
        self._tick = tick
        self._deadline_ms: int | None = None
        self._handle: asyncio.TimerHandle | None = None

    def aim(self, deadline_ms: int | None) -> None:
        """The nearest deadline is this one now; a call that comes too early finds nothing due."""
        if deadline_ms is None or (self._deadline_ms is not None and self._deadline_ms <= deadline_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        delay_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        self._deadline_ms = deadline_ms
        self._handle = self._loop.call_later(delay_ms / 1000, self._run)

    def _run(self) -> None:
        self._deadline_ms = None
        self._handle = None
        self._tick()

    def stop(self) -> None:
        """Stop ticking."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
