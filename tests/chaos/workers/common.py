"""What workers share: their task, the orders that reach them while they work, a counter others can read."""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUICK: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 5_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "socket.timeout.ms": 10_000,
    "socket.connection.setup.timeout.ms": 2_000,
}
"""A client that finds out soon where its leader has gone."""
_COUNT = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is to do; goes to it as JSON."""

    kind: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    directory: Path
    options: dict[str, Any] = field(default_factory=dict)

    def as_text(self) -> str:
        facts = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({**facts, "directory": str(self.directory)})

    @classmethod
    def from_text(cls, text: str) -> Task:
        facts = json.loads(text)
        return cls(**{**facts, "directory": Path(facts["directory"])})


class Orders:
    """Lines on standard input: ``{"stop": true}`` or ``{"drain": {partition: end}}``; its end means stop."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self.ends: dict[int, int] | None = None
        """Where to end reading; None while there is no end."""
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    @property
    def is_asked_to_stop(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Pause; True as soon as the worker is to stop."""
        return self._stop.wait(seconds)

    def _listen(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if "drain" in order:
                self.ends = {int(partition): end for partition, end in order["drain"].items()}
            else:
                break
        self._stop.set()


class Count:
    """A number in a file: written by a worker now and then, read by the one who tells the progress."""

    def __init__(self, directory: Path, name: str) -> None:
        self._file = os.open(directory / f"{name}.count", os.O_RDWR | os.O_CREAT)
        self._value = 0

    def add(self) -> None:
        self._value += 1

    def write(self) -> None:
        os.pwrite(self._file, _COUNT.pack(self._value), 0)


def counted(directory: Path) -> int:
    """The sum of all counters in a directory."""
    return sum(_COUNT.unpack(data)[0] for file in directory.glob("*.count") if (data := file.read_bytes()))
