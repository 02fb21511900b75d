"""Memory, open files and threads of brokers over time, from /proc, and whether they grow."""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from chaos.history import Entry, HistoryFile
from chaos.nodes import Broker

EVERY_S = 5.0
WARM_UP = 0.3
"""The share of a run that is left out: caches fill, segments come up to their number."""
MEMORY_MIB_PER_HOUR_MAX = 30.0
FILES_GROWTH_MAX = 0.15
THREADS_MAX = 6
"""The loop, and a pool whose threads are started when they are first needed."""
_LINE = re.compile(r"^(RssAnon|Threads):\s+(\d+)", re.MULTILINE)


class Sampler:
    """Looks at every broker's process every few seconds."""

    def __init__(self, brokers: Iterable[Broker], history: HistoryFile) -> None:
        self._brokers = list(brokers)
        self._history = history
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            for broker in self._brokers:
                if broker.kind != "apache" and broker.is_running and (sample := read_process(broker.pid)):
                    self._history.write("sampled", broker=broker.number, life=broker.lives, **sample)


def read_process(pid: int) -> dict[str, int] | None:
    """Memory of its own in KiB (maps of files are the cache's), threads, open files; None when it is gone."""
    try:
        found = dict(_LINE.findall(Path(f"/proc/{pid}/status").read_text(encoding="ascii")))
        files = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None
    if "RssAnon" not in found:
        return None  # It has ended, and nobody has asked how yet.
    return {"memory": int(found["RssAnon"]), "threads": int(found["Threads"]), "files": files}


@dataclass(frozen=True, slots=True)
class Trend:
    """One broker's process over its life, after the warm-up."""

    broker: int
    minutes: float
    memory_mib: tuple[float, float]
    """In the first and in the last quarter."""
    memory_mib_per_hour: float
    files: tuple[float, float]
    threads: tuple[float, float]

    @property
    def is_flat(self) -> bool:
        return (
            self.memory_mib_per_hour <= MEMORY_MIB_PER_HOUR_MAX
            and self.files[1] <= self.files[0] * (1 + FILES_GROWTH_MAX) + 8
            and self.threads[1] <= THREADS_MAX
        )


def trends(history: Iterable[Entry], minutes_min: float) -> list[Trend]:
    """Of every process that lived long enough."""
    lives: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in history:
        if entry["did"] == "sampled":
            lives[entry["broker"], entry["life"]].append(entry)
    found = []
    for (broker, _), samples in sorted(lives.items()):
        samples = samples[int(len(samples) * WARM_UP) :]
        if len(samples) < 8 or (minutes := (samples[-1]["t"] - samples[0]["t"]) / 60) < minutes_min:
            continue
        slope = _slope([s["t"] for s in samples], [s["memory"] / 1024 for s in samples])
        found.append(
            Trend(
                broker,
                minutes,
                _ends([s["memory"] / 1024 for s in samples]),
                slope * 3600,
                _ends([s["files"] for s in samples]),
                _ends([s["threads"] for s in samples]),
            )
        )
    return found


def _ends(values: list[float]) -> tuple[float, float]:
    quarter = max(1, len(values) // 4)
    return sum(values[:quarter]) / quarter, sum(values[-quarter:]) / quarter


def _slope(xs: list[float], ys: list[float]) -> float:
    """Least squares."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0
