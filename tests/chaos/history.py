"""What everyone did and saw, as lines of JSON: written by the workers, read by the checker.

Records are kept as runs: ``[producer, seq, offset, count]`` stands for so many records of one producer with
successive numbers at successive offsets. Nothing is lost by that, and a million records fit in few lines.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
_VALUE = struct.Struct(">HHI")
"""What a record says of itself: its producer, its partition, its number in that partition."""


def make_value(producer: int, partition: int, seq: int, padding: bytes) -> bytes:
    return _VALUE.pack(producer, partition, seq) + padding


def read_value(value: bytes) -> tuple[int, int, int]:
    """Producer, partition, number; of a value nobody made, a producer that does not exist."""
    return _VALUE.unpack_from(value) if len(value) >= _VALUE.size else (0xFFFF, 0xFFFF, 0)


class HistoryFile:
    """Appends entries of one actor to its file, with the machine's monotonic clock."""

    def __init__(self, directory: Path, who: str) -> None:
        self.who = who
        self._file = (directory / f"{who}.jsonl").open("a", encoding="utf-8")

    def write(self, did: str, **facts: Any) -> None:
        line = json.dumps({"t": round(time.monotonic(), 4), "who": self.who, "did": did, **facts})
        self._file.write(line + "\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class Runs:
    """Gathers records of one partition into runs."""

    rows: list[list[int]] = field(default_factory=list)

    def add(self, producer: int, seq: int, offset: int) -> None:
        if self.rows:
            last = self.rows[-1]
            count = last[3]
            if last[0] == producer and last[1] + count == seq and last[2] + count == offset:
                last[3] = count + 1
                return
        self.rows.append([producer, seq, offset, 1])


def read_history(directory: Path) -> Iterator[Entry]:
    """Every entry of every actor; in order for each actor."""
    for file in sorted(directory.glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
