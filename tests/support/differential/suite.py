"""The whole recorded list of requests."""

from __future__ import annotations

from support.differential.cases import (
    admin,
    controller,
    fetch,
    frames,
    metadata,
    offsets,
    produce,
    twice,
)
from support.differential.compare import Allowed, Difference, compare
from support.differential.talk import Case
from support.differential.target import KINDS, Target, prepare

# Those that write come first, so that each has a partition of its own.
WRITING: list[Case] = [
    *produce.CASES,
    *fetch.CASES,
    *offsets.CASES,
    *admin.CASES,
    *controller.CASES,
    *metadata.CASES,
    *twice.CASES,
]
ALL: list[Case] = [*WRITING, *frames.CASES]
PARTITIONS = KINDS["plain"][0]
assert len(WRITING) <= PARTITIONS, f"{len(WRITING)} cases need a partition of their own"


def run_suite(reference: Target, candidate: Target, allowed: list[Allowed]) -> tuple[int, list[Difference]]:
    """Ask both brokers everything; the number of requests, and the differences that are not allowed."""
    prepare(reference, candidate)
    asked, unexpected = 0, []
    for number, case in enumerate(ALL):
        count, differences = compare(case, number % PARTITIONS, reference, candidate)
        asked += count
        for difference in differences:
            covering = [each for each in allowed if each.covers(difference)]
            for each in covering:
                each.used += 1
            if not covering:
                unexpected.append(difference)
    return asked, unexpected
