"""Everything that must happen later, in one heap: the edge waits for the nearest deadline only."""

import heapq
from collections.abc import Callable

from ottla.broker.runtime.clock import Clock


class Timer:
    """One thing to do later; cancelling it twice, or after it ran, is harmless."""

    __slots__ = ("deadline_ms", "run")

    def __init__(self, deadline_ms: int, run: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.run: Callable[[], None] | None = run

    @property
    def is_pending(self) -> bool:
        return self.run is not None

    def cancel(self) -> None:
        """Forget it. The heap drops its entry when the deadline comes."""
        self.run = None


class Timers:
    """The node's timers; they run in the order of their deadlines, then of their making."""

    __slots__ = ("_clock", "_heap", "_made")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._made = 0

    def after(self, delay_ms: int, run: Callable[[], None]) -> Timer:
        """Run this once, ``delay_ms`` from now."""
        timer = Timer(self._clock.monotonic_ms() + delay_ms, run)
        self._made += 1
        heapq.heappush(self._heap, (timer.deadline_ms, self._made, timer))
        return timer

    def next_deadline_ms(self) -> int | None:
        """When the edge should tick next, by the monotonic clock; None when nothing waits."""
        heap = self._heap
        while heap and heap[0][2].run is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def late_ms(self) -> int:
        """How long the first timer has been due: a process that was frozen finds itself behind."""
        first_ms = self.next_deadline_ms()
        return 0 if first_ms is None else max(0, self._clock.monotonic_ms() - first_ms)

    def run_due(self) -> None:
        """Run what is due now. What a timer starts with no delay waits for the next tick.

        One that raises does not take those behind it along: they run with the next tick.
        """
        now_ms = self._clock.monotonic_ms()
        heap = self._heap
        made_before = self._made
        while heap and heap[0][0] <= now_ms and heap[0][1] <= made_before:
            timer = heapq.heappop(heap)[2]
            run, timer.run = timer.run, None
            if run is not None:
                run()
