"""Keeps a storm of equal events from becoming a storm of log lines."""

from collections.abc import Callable

LINES_PER_WINDOW = 20
WINDOW_SECONDS = 10.0


class LogLimit:
    """So many lines a window; the first line of the next window tells how many were left out."""

    __slots__ = ("_clock", "_left_out", "_lines", "_window_began")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._window_began = clock()
        self._lines = 0
        self._left_out = 0

    def take(self) -> int | None:
        """None when this line must be left out, else how many were left out before it."""
        now = self._clock()
        if now - self._window_began >= WINDOW_SECONDS:
            self._window_began, self._lines = now, 0
        if self._lines >= LINES_PER_WINDOW:
            self._left_out += 1
            return None
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
