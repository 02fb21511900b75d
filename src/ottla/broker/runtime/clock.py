"""The time a broker sees: the edge's real clocks, or a simulation's."""

from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that only moves forward, one that people read."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment; for time-outs and lags."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; for timestamps that others will read."""
