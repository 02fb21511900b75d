"""When partitions were led and when writes went through: how long each was away, and how soon it was back."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.history import Entry


@dataclass(slots=True)
class Availability:
    """The figures of a run."""

    longest_without_ack: dict[int, float] = field(default_factory=dict)
    """By partition, the longest time between two acknowledgements, in seconds."""
    led_again: list[float] = field(default_factory=list)
    """By fault that healed, how long until every partition was led, in seconds."""
    written_again: list[float] = field(default_factory=list)
    """The same until an acknowledgement came from every partition."""
    late: list[str] = field(default_factory=list)


def measure(history: Iterable[Entry], partitions: int, bound_s: float) -> Availability:
    """``bound_s``: what is allowed between healing and leading."""
    acks: dict[int, list[float]] = defaultdict(list)
    led: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    healed: list[tuple[float, str]] = []
    ended = float("inf")
    for entry in history:
        if entry["did"] == "acked":
            acks[entry["partition"]].append(entry["t"])
        elif entry["did"] in ("led", "not led"):
            led[entry["partition"]].append((entry["t"], entry["did"] == "led"))
        elif entry["did"] == "healed":
            healed.append((entry["t"], entry["text"]))
        elif entry["did"] == "load ended":
            ended = entry["t"]
    found = Availability()
    for partition in range(partitions):
        times = sorted(acks[partition])
        gaps = [later - sooner for sooner, later in pairwise(times) if later <= ended]
        found.longest_without_ack[partition] = max(gaps, default=0.0)
        acks[partition] = times
    for at, text in sorted(healed):
        waits = {partition: _until_led(sorted(led[partition]), at) for partition in range(partitions)}
        found.led_again.append(max(waits.values()))
        for partition, wait in waits.items():
            if wait > bound_s:
                found.late.append(f"partition {partition} was led {wait:.1f} s after: {text}")
        if at < ended:
            found.written_again.append(max(_until_ack(acks[p], at, ended) for p in range(partitions)))
    return found


def _until_led(changes: list[tuple[float, bool]], at: float) -> float:
    """How long after this moment the partition was first led."""
    is_led = False
    for when, now_led in changes:
        if when > at:
            if is_led:
                return 0.0
            if now_led:
                return when - at
        is_led = now_led
    return 0.0 if is_led else float("inf")


def _until_ack(times: list[float], at: float, ended: float) -> float:
    index = bisect_left(times, at)
    return times[index] - at if index < len(times) else ended - at
