"""How far behind a group is: in offsets now; over a window its trend, a verdict and the time to clear."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ottla.model.ids import TopicPartition

WINDOW_MS = 10 * 60_000
LOOKS_FOR_A_VERDICT = 3
CLEAR, FALLING, STEADY, RISING, STALLED = "clear", "falling", "steady", "rising", "stands still"


@dataclass(frozen=True, slots=True)
class Lag:
    """Where a group stands in one partition; ``None`` is not known."""

    group: str
    partition: TopicPartition
    committed: int | None
    end: int | None
    consumer_id: str = "-"
    host: str = "-"
    client_id: str = "-"

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else self.end - self.committed


@dataclass(frozen=True, slots=True)
class Point:
    """One look at a group in a partition."""

    time_ms: int
    committed: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed)


class Window:
    """The last looks at one group in one partition; no thresholds, only what they show.

    There are tens of thousands of windows: a look takes 24 bytes.
    """

    __slots__ = ("_numbers", "_window_ms")

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        self._window_ms = window_ms
        self._numbers = array("q")

    def take(self, point: Point) -> None:
        """One more look; those that are too old go."""
        self._numbers.extend((point.time_ms, point.committed, point.end))
        while self._numbers[0] < point.time_ms - self._window_ms:
            del self._numbers[:3]

    @property
    def points(self) -> list[Point]:
        """The looks, oldest first."""
        rest = iter(self._numbers)
        return [Point(*numbers) for numbers in zip(rest, rest, rest, strict=True)]

    @property
    def last(self) -> Point | None:
        """The newest look."""
        return Point(*self._numbers[-3:]) if self._numbers else None

    @property
    def lag(self) -> int:
        last = self.last
        return 0 if last is None else last.lag

    def verdict(self) -> str | None:
        """What the window shows; ``None`` while it holds too little."""
        points = self.points
        if len(points) < LOOKS_FOR_A_VERDICT:
            return None
        first, last = points[0], points[-1]
        if any(point.lag == 0 for point in points):
            return CLEAR if last.lag == 0 else STEADY
        if last.committed == first.committed:
            return STALLED
        if all(b.lag >= a.lag for a, b in pairwise(points)) and last.lag > first.lag:
            return RISING
        return FALLING if last.lag < first.lag else STEADY

    def seconds_behind(self) -> float | None:
        """How long ago the end of the log was where the group stands now, as far as the window reaches."""
        last = self.last
        if last is None or last.lag == 0:
            return None if last is None else 0.0
        for a, b in pairwise(self.points):
            if a.end <= last.committed < b.end:
                part = (last.committed - a.end) / (b.end - a.end)
                return (last.time_ms - (a.time_ms + part * (b.time_ms - a.time_ms))) / 1000
        return None

    def seconds_to_clear(self) -> float | None:
        """At the pace of the window; ``None`` where it never would be."""
        points = self.points
        if len(points) < 2:
            return None
        first, last = points[0], points[-1]
        gained, took_s = first.lag - last.lag, (last.time_ms - first.time_ms) / 1000
        if last.lag == 0:
            return 0.0
        return last.lag / (gained / took_s) if gained > 0 and took_s > 0 else None


WORST_FIRST = (STALLED, RISING, STEADY, FALLING, CLEAR)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group over all its partitions: the sum, and the worst of the rest."""

    lag: int
    partitions: int
    verdict: str | None
    seconds_behind: float | None
    seconds_to_clear: float | None


def group_lag(windows: Iterable[Window]) -> GroupLag:
    """What the windows of one group's partitions say together."""
    rows = [window for window in windows if window.last]
    verdicts = {window.verdict() for window in rows}
    behind = [seconds for window in rows if (seconds := window.seconds_behind()) is not None]
    clear = [window.seconds_to_clear() for window in rows]
    known = [seconds for seconds in clear if seconds is not None]
    return GroupLag(
        sum(window.lag for window in rows),
        len(rows),
        next((verdict for verdict in WORST_FIRST if verdict in verdicts), None),
        max(behind) if rows and len(behind) == len(rows) else None,
        max(known) if rows and len(known) == len(rows) else None,
    )
