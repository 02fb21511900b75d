"""The judge of copies finds what is wrong: each test breaks one promise in a history that was clean."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checker import Verdict
from chaos.copying import FINAL, READER, check_copies
from chaos.history import Entry

Runs = list[list[int]]
SOURCE: Runs = [[0, 0, 0, 3], [1, 0, 3, 2]]
"""Three records of producer 0 and two of producer 1."""
COPIES: Runs = [[0, 0, 0, 2], [0, 2, 4, 1], [1, 0, 7, 2]]
"""The same; between them stand markers and what was aborted."""


def entry(who: str, did: str, **facts: Any) -> Entry:
    return {"who": who, "did": did, **facts}


def judged(final: Runs, seen: Runs = COPIES, *more: Entry) -> Verdict:
    verdict = Verdict()
    source = [entry("final", "read", partition=0, runs=SOURCE)]
    copies = [
        entry(READER, "read", partition=0, runs=seen),
        entry(FINAL, "read", partition=0, runs=final),
        *more,
    ]
    check_copies(source, copies, "final", verdict)
    return verdict


def test_everything_copied_once_in_order() -> None:
    verdict = judged(COPIES)

    assert verdict.violations == []
    assert verdict.copied == 5


@pytest.mark.parametrize(
    "final",
    [
        [[0, 0, 0, 3], [1, 0, 4, 1]],
        [[0, 0, 0, 3], [0, 2, 3, 1], [1, 0, 4, 2]],
        [[1, 0, 0, 2], [0, 0, 2, 3]],
        [],
    ],
    ids=["one is missing", "one twice", "another order", "none"],
)
def test_copies_that_are_not_what_was_there_to_copy(final: Runs) -> None:
    assert judged(final, final).counts["copied wrongly"] == 1


def test_a_reader_that_was_given_what_is_not_there_in_the_end() -> None:
    assert judged(COPIES, [*COPIES, [1, 1, 9, 1]]).counts["copies changed"] == 1


def test_a_copier_that_could_not_go_on() -> None:
    verdict = judged(COPIES, COPIES, entry("copier-0-1", "broke", why="INVALID_TXN_STATE"))

    assert verdict.counts["copier broke"] == 1


def test_a_copier_that_was_fenced_is_right() -> None:
    verdict = judged(COPIES, COPIES, entry("copier-0-1", "fenced", why="PRODUCER_FENCED"))

    assert verdict.violations == []
    assert verdict.fenced == 1
