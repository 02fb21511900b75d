"""How much there was of late, as Kafka measures it, and how long to wait until it is little enough."""

from typing import NamedTuple


class Windows(NamedTuple):
    """``quota.window.num`` windows of ``quota.window.size.seconds`` each."""

    number: int = 11
    size_ms: int = 1_000

    @property
    def burst_s(self) -> float:
        """For how many seconds a client may use up its quota at once."""
        return (self.number - 1) * self.size_ms / 1_000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0


class Rate:
    """An amount a second over the last windows: a sample for each, and one for what overlaps the first."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Count this much now; a negative amount takes back what was counted."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._next(now_ms)
        sample.total += amount
        sample.last_ms = now_ms

    def _next(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to wait until the rate is within the limit; 0 if it is."""
        total, window_ms = self._measure(now_ms)
        rate = total * 1_000 / window_ms
        if rate <= limit:
            return 0
        return _rounded((rate - limit) / limit * window_ms) if limit > 0 else _FOR_EVER_MS

    def per_second(self, now_ms: int) -> float:
        """The rate now."""
        total, window_ms = self._measure(now_ms)
        return total * 1_000 / window_ms

    def is_silent(self, now_ms: int) -> bool:
        """Whether nothing is left to remember."""
        span_ms = self._windows.number * self._windows.size_ms
        return all(now_ms - sample.last_ms >= span_ms for sample in self._samples)

    def _measure(self, now_ms: int) -> tuple[float, int]:
        """What there was, and over how many milliseconds: never less than all full windows but one."""
        number, size_ms = self._windows
        for sample in self._samples:
            if now_ms - sample.last_ms >= number * size_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        elapsed_ms += max(0, number - 1 - elapsed_ms // size_ms) * size_ms
        return sum(sample.total for sample in self._samples), max(elapsed_ms, 1)


class TokenBucket:
    """Tokens that grow with time up to a burst of all windows; it starts full, and may fall below zero."""

    __slots__ = ("_last_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._last_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """How many there are."""
        burst = limit * self._windows.number * self._windows.size_ms / 1_000
        if self._last_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._last_ms) / 1_000)
        self._last_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take so many, whether they are there or not."""
        self._tokens = self.tokens(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long it takes until none is owed any more."""
        owed = -self.tokens(limit, now_ms)
        if owed <= 0:
            return 0
        return _rounded(owed / limit * 1_000) if limit > 0 else _FOR_EVER_MS


_FOR_EVER_MS = 2**31 - 1


def _rounded(wait_ms: float) -> int:
    """As Java rounds, and no more than an answer can tell."""
    return min(int(wait_ms + 0.5), _FOR_EVER_MS)
