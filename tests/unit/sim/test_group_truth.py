"""What may not happen to a consumer group is seen when it happens."""

from __future__ import annotations

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.group_truth import GroupTruth
from ottla.sim.history import Violation
from ottla.sim.world import World

P0, P1 = TopicPartition("topic-0", 0), TopicPartition("topic-0", 1)


@pytest.fixture
def truth() -> GroupTruth:
    truth = GroupTruth(World(1), "group")
    truth.owned(1, "a", [P0])
    truth.owned(1, "b", [P1])
    return truth


def test_two_owners_in_one_generation(truth: GroupTruth) -> None:
    with pytest.raises(Violation, match="two owners"):
        truth.owned(1, "b", [P0])


def test_another_owner_in_another_generation_is_fine(truth: GroupTruth) -> None:
    truth.owned(2, "b", [P0])


def test_a_generation_that_comes_after_a_later_one(truth: GroupTruth) -> None:
    truth.owned(3, "a", [])

    with pytest.raises(Violation, match="generation 2"):
        truth.owned(2, "a", [])


def test_a_committed_offset_that_is_forgotten(truth: GroupTruth) -> None:
    truth.committed(1, 1, P0, 7)
    truth.fetched(1, P0, 7, truth.floor(P0))

    with pytest.raises(Violation, match="committed offset lost"):
        truth.fetched(1, P0, 6, truth.floor(P0))


def test_an_old_generation_may_be_told_old_offsets(truth: GroupTruth) -> None:
    truth.owned(2, "b", [P0])
    truth.committed(2, 2, P0, 7)

    truth.fetched(1, P0, 3, truth.floor(P0))


def test_a_commit_of_an_old_generation_that_is_taken(truth: GroupTruth) -> None:
    truth.owned(2, "b", [P0])

    with pytest.raises(Violation, match="generation 1"):
        truth.committed(1, 2, P0, 7)


def test_nothing_is_asked_of_a_group_whose_log_is_lost(truth: GroupTruth) -> None:
    truth.committed(1, 1, P0, 7)
    truth.is_void = True

    truth.fetched(1, P0, -1, truth.floor(P0))
    truth.owned(1, "b", [P0])
