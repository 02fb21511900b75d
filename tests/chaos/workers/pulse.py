"""Whether librdkafka's main thread lives.

With a broker that leaves while an OffsetForLeaderEpoch is on its way, the client can lock itself: its main
thread waits for a broker's thread and that one for it (librdkafka issue 5476, open in 2.16). Nothing that a
cluster answers wakes it again. Such a client is told from one that a broker starves by its main thread, which
wakes many times a second to look at its timers, whatever brokers do; a locked one does not wake at all.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

from chaos.history import HistoryFile

EVERY_MS = 1_000
SILENT_S = 20.0
WATCHED_S = 5.0
_WAKES = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)


class Pulse:
    """One client's statistics; put ``settings`` among its own."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    @property
    def settings(self) -> dict[str, Any]:
        return {"statistics.interval.ms": EVERY_MS, "stats_cb": self._beat}

    def is_silent(self, seconds: float = SILENT_S) -> bool:
        return time.monotonic() - self._last > seconds

    def _beat(self, _statistics: str) -> None:
        self._last = time.monotonic()


def is_locked(history: HistoryFile) -> bool:
    """Whether a main thread of the client has not woken for seconds; what each thread did is written down."""
    before = _wakes_of_threads()
    time.sleep(WATCHED_S)
    now = _wakes_of_threads()
    woke = {name: now[name] - count for name, count in before.items() if name in now}
    locked = any(name.startswith("rdk:main") and not count for name, count in woke.items())
    history.write("client locked" if locked else "client starved", woke=woke)
    history.flush()
    return locked


def begin_again_when_locked(pulse: Pulse, history: HistoryFile, silent_s: float) -> None:
    """For a worker that may be caught in a call of its client: the same process starts anew."""

    def watch() -> None:
        while not (pulse.is_silent(silent_s) and is_locked(history)):
            time.sleep(1.0)
        os.execv(sys.executable, [sys.executable, "-m", "chaos.workers", *sys.argv[1:]])

    threading.Thread(target=watch, name="pulse", daemon=True).start()


def _wakes_of_threads() -> dict[str, int]:
    wakes = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text(encoding="ascii").strip()
            (count,) = _WAKES.findall((task / "status").read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        wakes[f"{name} {task.name}"] = int(count)
    return wakes
