"""The same conversation of a group with an Apache and with an Ottla coordinator: the same answers.

Two clusters of one broker each; member ids are numbered in the order in which they appear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.groups import cases_members, cases_offsets
from support.groups.conversation import Case, answers_of
from support.groups.two_clusters import TwoClusters, two_clusters

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

CASES = [*cases_members.CASES, *cases_offsets.CASES]


@pytest.fixture(scope="module")
def clusters(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two")) as running:
        yield running


def parting(theirs: list[tuple[str, Any]], ours: list[tuple[str, Any]]) -> list[str]:
    """The first answers that differ, with where in the conversation they stand."""
    for number, (left, right) in enumerate(zip(theirs, ours, strict=False)):
        if left != right:
            return [f"answer {number} of {left[0]}", f"Apache: {left[1]}", f"Ottla:  {right[1]}"]
    return [] if len(theirs) == len(ours) else ["one conversation is longer than the other"]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_groups_conversation_is_the_same_at_both(clusters: TwoClusters, case: Case) -> None:
    theirs = answers_of(case, clusters.apache.address)
    ours = answers_of(case, clusters.ottla.address)

    assert parting(theirs, ours) == []
