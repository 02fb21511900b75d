"""Whether librdkafka's main thread lives.

With a broker that leaves while an OffsetForLeaderEpoch is on its way, the client can lock itself: its main
thread waits for a broker's thread and that one for it (librdkafka issue 5476, open in 2.16). Nothing that a
cluster answers wakes it again. Such a client is told from one that a broker starves by its statistics, which
its main thread gives every second whatever brokers do.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

EVERY_MS = 1_000
SILENT_S = 20.0


class Pulse:
    """One client's; put ``settings`` among its own."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    @property
    def settings(self) -> dict[str, Any]:
        return {"statistics.interval.ms": EVERY_MS, "stats_cb": self._beat}

    @property
    def is_silent(self) -> bool:
        return time.monotonic() - self._last > SILENT_S

    def _beat(self, _statistics: str) -> None:
        self._last = time.monotonic()


def waits_of_threads() -> dict[str, str]:
    """What each thread of this process waits for, by its name: evidence of a lock."""
    waits = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text(encoding="ascii").strip()
            waits[f"{name} {task.name}"] = (task / "wchan").read_text(encoding="ascii").strip()
        except OSError:
            continue
    return waits
