"""How long each file of tests takes: the table ``durations.txt``; ``make full ARGS=--weigh`` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLE = Path(__file__).with_name("durations.txt")
SECONDS_MIN = 2
"""What takes less is not in the table."""


@cache
def durations() -> dict[str, int]:
    """Seconds by file, as the table has them."""
    rows = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return {file: int(seconds) for seconds, file in rows}


def write_durations(measured: Mapping[str, float]) -> None:
    """Bring the table up to date; what was not measured now keeps its row as long as the file is there."""
    known = {file: float(seconds) for file, seconds in durations().items()} | dict(measured)
    rows = sorted((-round(seconds), file) for file, seconds in known.items() if (ROOT / file).exists())
    text = "".join(f"{-seconds:>4} {file}\n" for seconds, file in rows if -seconds >= SECONDS_MIN)
    TABLE.write_text(text, encoding="utf-8")
