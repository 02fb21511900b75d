"""What a broker counts while it works: plain numbers, cheap enough to be always on.

Requests are timed only where somebody wants to read the times: see ``RequestMeter``.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from ottla.controller.effects import Decision
from ottla.controller.election import Rule
from ottla.wire.keys import ApiKey

BUCKETS_MS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0)
"""Upper ends of the histogram of request times; what takes longer is counted without a bucket."""

IDLE_WINDOW_S_MIN: Final = 1.0
UNKNOWN_API: Final = -1
_KNOWN: Final = frozenset(map(int, ApiKey))


class Meters:
    """Counters since the broker's start."""

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.produces_failed = 0
        """Batches that a log refused, or for want of replicas; what clients run into daily left out."""
        self.internal_errors: Counter[int] = Counter()
        """Requests that ended in a bug of ours, by API."""
        self.idle: IdleMeter | None = None
        """Of the thread that handles requests; None while nobody reads it."""
        self.elections: Counter[Rule] = Counter()
        self.transactions_fenced: Counter[str] = Counter()
        """Aborted by this broker as coordinator, and not by their producers; by cause."""
        self.certificate_ends: Mapping[str, int] = {}
        """By TLS listener: when its certificate ends, in seconds since 1970."""

    def isr_changed(self, before: int, after: int) -> None:
        """The controller accepted a proposed ISR: so many were in sync before, and so many are now."""
        if after < before:
            self.isr_shrinks += 1
        else:
            self.isr_expands += 1

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count those of the controller's decisions that chose a leader."""
        for decision in decisions:
            after = decision.after
            if after is not None and (decision.before is None or after.leader != decision.before.leader):
                self.elections[decision.rule] += 1


class IdleMeter:
    """Which share of the time a thread is idle, from one look to the next that is a second later or more."""

    def __init__(self, now_s: Callable[[], float], busy_s: Callable[[], float]) -> None:
        self._now_s, self._busy_s = now_s, busy_s
        self._last = now_s(), busy_s()
        self._share = 1.0

    def share(self) -> float:
        """Between 0 and 1; what was seen last while the next look would come too early."""
        now_s, busy_s = self._now_s(), self._busy_s()
        elapsed_s = now_s - self._last[0]
        if elapsed_s >= IDLE_WINDOW_S_MIN:
            self._share = min(1.0, max(0.0, 1 - (busy_s - self._last[1]) / elapsed_s))
            self._last = now_s, busy_s
        return self._share


class ApiTimes:
    """The requests of one API."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.bytes_in = 0
        self.bytes_out = 0
        self.buckets = [0] * (len(BUCKETS_MS) + 1)


class TimedRequest(Protocol):
    """What is measured of a request."""

    api_key: int
    size: int
    came_s: float


class RequestMeter:
    """Times every request from its arrival to its answer, parked or not."""

    __slots__ = ("_now_s", "by_api")

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.by_api: dict[int, ApiTimes] = {}

    def came(self, request: TimedRequest) -> None:
        """A request begins."""
        request.came_s = self._now_s()

    def answered(self, request: TimedRequest, answer_bytes: int) -> None:
        """Its answer goes out."""
        elapsed_ms = (self._now_s() - request.came_s) * 1000
        times = self.by_api.get(request.api_key) or self._times(request.api_key)
        times.count += 1
        times.total_ms += elapsed_ms
        times.bytes_in += request.size
        times.bytes_out += answer_bytes
        times.buckets[bisect_left(BUCKETS_MS, elapsed_ms)] += 1

    def _times(self, api_key: int) -> ApiTimes:
        """The numbers that nobody knows share their times: a client may send any."""
        return self.by_api.setdefault(api_key if api_key in _KNOWN else UNKNOWN_API, ApiTimes())
