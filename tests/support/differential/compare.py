"""Two lists of answers held against each other, and the differences that are allowed, with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.differential.talk import Answer, Case, Talk
from support.differential.target import Target


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers part: the case, what was asked, the field, and both values."""

    case: str
    asked: str
    path: str
    reference: Any
    candidate: Any

    def __str__(self) -> str:
        return (
            f"[{self.case}] {self.asked} {self.path}: Apache {self.reference!r}, candidate {self.candidate!r}"
        )


@dataclass(slots=True)
class Allowed:
    """A difference that shall be: regular expressions for case and path, and why."""

    case: str
    path: str
    reason: str
    used: int = field(default=0, compare=False)

    def covers(self, difference: Difference) -> bool:
        if re.fullmatch(self.case, f"{difference.case}: {difference.asked}") is None:
            return False
        return re.fullmatch(self.path, difference.path) is not None


def run_case(case: Case, number: int, target: Target) -> list[Answer]:
    """The answers of one broker."""
    talk = Talk(target, number)
    try:
        case.run(talk)
    finally:
        talk.close()
    return talk.answers


def compare(case: Case, number: int, reference: Target, candidate: Target) -> tuple[int, list[Difference]]:
    """Ask both; how many requests that were, and where the answers part."""
    theirs, ours = run_case(case, number, reference), run_case(case, number, candidate)
    differences = []
    for index in range(max(len(theirs), len(ours))):
        expected = theirs[index] if index < len(theirs) else Answer("nothing", None)
        got = ours[index] if index < len(ours) else Answer("nothing", None)
        for path, left, right in _parting(expected.said, got.said):
            differences.append(Difference(case.name, expected.asked, path, left, right))
    return len(theirs), differences


def _parting(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in left.keys() | right.keys():
            yield from _parting(left.get(name), right.get(name), f"{path}.{name}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _parting(one, other, f"{path}[{index}]")
    elif left != right:
        yield path, left, right
