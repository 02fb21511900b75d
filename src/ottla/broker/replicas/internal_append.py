"""An append of the broker itself, which waits for replicas as a producer's does."""

from collections.abc import Callable

from ottla.broker.runtime.parked import Waiting
from ottla.model.errors import ErrorCode


class InternalAppend:
    """A coordinator's append that is written and not yet committed."""

    __slots__ = ("_then", "_waiting", "deadline_ms", "end_offset", "is_over")

    def __init__(self, waiting: Waiting, end_offset: int, then: Callable[[ErrorCode], None]) -> None:
        self._waiting = waiting
        self._then = then
        self.end_offset = end_offset
        self.is_over = False
        self.deadline_ms = 0

    @property
    def connection(self) -> None:
        return None

    def settled(self, error_code: int) -> None:
        if not self.is_over:
            self.is_over = True
            self._waiting.deadlines.remove(self)
            self._then(ErrorCode(error_code))

    def expire(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._then(ErrorCode.REQUEST_TIMED_OUT)

    def abandon(self) -> None:
        self.is_over = True
