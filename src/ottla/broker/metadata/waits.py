"""Requests that are answered once this broker's own metadata show that it is done."""

from collections.abc import Callable

from ottla.broker.runtime.call_each import call_each
from ottla.broker.runtime.timers import Timer, Timers


class _Wait:
    __slots__ = ("is_done", "then", "timer")

    def __init__(self, is_done: Callable[[], bool], then: Callable[[bool], None]) -> None:
        self.is_done = is_done
        self.then = then
        self.timer: Timer | None = None


class MetadataWaits:
    """Looks again after every UpdateMetadata; what takes too long is answered so."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: list[_Wait] = []

    def wait(self, is_done: Callable[[], bool], timeout_ms: int, then: Callable[[bool], None]) -> None:
        """Call ``then`` with True once ``is_done`` holds, with False when the time is up; perhaps at once."""
        if is_done():
            then(True)
        elif timeout_ms <= 0:
            then(False)
        else:
            wait = _Wait(is_done, then)
            wait.timer = self._timers.after(timeout_ms, lambda: self._time_is_up(wait))
            self._waiting.append(wait)

    def check(self) -> None:
        """The metadata changed: requests may have waited for it."""
        if not self._waiting:
            return
        done: list[_Wait] = []
        left: list[_Wait] = []
        for wait in self._waiting:
            (done if wait.is_done() else left).append(wait)
        self._waiting = left
        for wait in done:
            if wait.timer is not None:
                wait.timer.cancel()
        call_each((wait.then for wait in done), True)

    def _time_is_up(self, wait: _Wait) -> None:
        self._waiting.remove(wait)
        wait.then(False)
