"""The same conversation of a group with an Apache and with an Ottla coordinator: the same answers.

Two clusters of one broker each; member ids are numbered in the order in which they appear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.apis.join_group import JoinGroupResponse
from ottla.wire.apis.list_groups import ListGroupsRequest
from ottla.wire.headers import decode_response
from support.groups import cases_hostile, cases_members, cases_offsets
from support.groups.conversation import Case, Talk, answers_of
from support.groups.two_clusters import TwoClusters, two_clusters
from support.running.waiting import wait_until
from support.wire.client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

CASES = [*cases_members.CASES, *cases_offsets.CASES, *cases_hostile.CASES]


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


# -- ten thousand groups -------------------------------------------------------------------------

STRANGERS, AT_ONCE = 10_000, 100
MEMORY_GROWTH_MB_MAX = 64


def ask_for_ids(address: str) -> Counter[int]:
    """A first join of ever another group; nobody comes back. The codes of the answers."""
    codes: Counter[int] = Counter()
    talk = Talk(address, "")
    with WireClient(address) as client:
        for first in range(0, STRANGERS, AT_ONCE):
            for number in range(first, first + AT_ONCE):
                talk.group = f"stranger-{number}"
                client.send(talk.join_request(session_timeout_ms=2_000), 9)
            for _ in range(AT_ONCE):
                frame = client.read_frame()
                assert frame is not None, "the broker hung up"
                codes[decode_response(JoinGroupResponse, 9, frame)[1].error_code] += 1
    return codes


def strangers_at(address: str) -> int:
    with WireClient(address) as client:
        listed = client.ask(ListGroupsRequest(), 4).groups
    return sum(group.group_id.startswith("stranger-") for group in listed)


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.full("ten thousand groups at two brokers")
def test_ten_thousand_names_get_the_same_answer_and_leave_nothing_behind(clusters: TwoClusters) -> None:
    theirs, ours = ask_for_ids(clusters.apache.address), ask_for_ids(clusters.ottla.address)
    before_mb = resident_mb(clusters.ottla.pid)

    again = ask_for_ids(clusters.ottla.address)
    growth_mb = resident_mb(clusters.ottla.pid) - before_mb

    assert theirs == ours == again == {79: STRANGERS}
    assert growth_mb < MEMORY_GROWTH_MB_MAX
    wait_until(lambda: strangers_at(clusters.ottla.address) == 0, "unused ids and their groups are forgotten")
