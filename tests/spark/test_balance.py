"""Plans of any small cluster: as even as they can be, with no more moves than allowed."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.spark.jobs.balance import EVEN_ENOUGH, Assignment, balanced, bytes_on, leaders_on

DEAD = 9


@st.composite
def assignments(draw: st.DrawFn, *, partitions_max: int = 12) -> tuple[list[int], Assignment]:
    """Live brokers, and partitions with one to three replicas, here and there one on a dead broker."""
    brokers = list(range(draw(st.integers(2, 5))))
    replicas = st.lists(st.sampled_from([*brokers, DEAD]), unique=True, min_size=1, max_size=3)
    count = draw(st.integers(1, partitions_max))
    return brokers, {TopicPartition("t", n): draw(replicas) for n in range(count)}


def spread(values: list[int]) -> int:
    return max(values) - min(values)


def leaders(brokers: list[int], assignment: Assignment) -> list[int]:
    return [leaders_on(broker, assignment) for broker in brokers]


def moves(before: Assignment, after: Assignment) -> int:
    return sum(len(set(after[partition]) - set(before[partition])) for partition in before)


def fewest_squares(brokers: list[int], assignment: Assignment) -> int:
    """The evenest that any choice of leaders within the replicas is, by trying them all."""
    choices = [
        [broker for broker in replicas if broker != DEAD]
        for replicas in assignment.values()
        if replicas[0] != DEAD
    ]
    return min(
        sum(chosen.count(broker) ** 2 for broker in brokers) for chosen in map(list, product(*choices))
    )


@given(assignments(partitions_max=7))
def test_without_moves_leaders_are_as_even_as_any_order_of_the_replicas_makes_them(
    cluster_of: tuple[list[int], Assignment],
) -> None:
    brokers, before = cluster_of

    after = balanced(brokers, before, dict.fromkeys(before, 1), moves_max=0)

    assert all(set(after[partition]) == set(before[partition]) for partition in before)
    assert sum(count**2 for count in leaders(brokers, after)) == fewest_squares(brokers, before)


@given(assignments())
def test_with_moves_to_spare_no_broker_leads_two_more_than_another(
    cluster_of: tuple[list[int], Assignment],
) -> None:
    brokers, before = cluster_of

    after = balanced(brokers, before, dict.fromkeys(before, 0), moves_max=1000)

    alive = {p: replicas for p, replicas in after.items() if replicas[0] != DEAD}
    assert spread(leaders(brokers, alive)) <= 1


@given(assignments(), st.data())
def test_a_plan_keeps_to_its_moves_and_makes_nothing_worse(
    cluster_of: tuple[list[int], Assignment], data: st.DataObject
) -> None:
    brokers, before = cluster_of
    sizes = {partition: data.draw(st.integers(0, 100)) for partition in before}
    moves_max = data.draw(st.integers(0, 5))

    after = balanced(brokers, before, sizes, moves_max)

    assert moves(before, after) <= moves_max
    assert after.keys() == before.keys()
    for partition, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(before[partition])
        assert (DEAD in replicas) == (DEAD in before[partition])
    loads = [bytes_on(broker, before, sizes) for broker in brokers]
    mean = sum(loads) / len(loads)
    assert max(bytes_on(b, after, sizes) for b in brokers) <= max(*loads, (1 + EVEN_ENOUGH) * mean)


@given(st.integers(2, 6), st.integers(1, 30))
def test_a_broker_that_is_new_gets_its_share_of_equal_replicas(old: int, per_broker: int) -> None:
    before = {TopicPartition("t", n): [n % old] for n in range(old * per_broker)}
    brokers = list(range(old + 1))

    after = balanced(brokers, before, dict.fromkeys(before, 1000), moves_max=1000)

    even = old * per_broker / (old + 1)
    assert spread(leaders(brokers, after)) <= max(1, EVEN_ENOUGH * even)
    assert moves(before, after) <= even + 1


def test_leadership_is_handed_on_where_no_single_change_helps() -> None:
    before = {
        **{TopicPartition("a", n): [0, 1] for n in range(4)},
        **{TopicPartition("b", n): [1, 2] for n in range(3)},
        TopicPartition("c", 0): [2],
    }

    after = balanced([0, 1, 2], before, dict.fromkeys(before, 1), moves_max=0)

    assert sorted(leaders([0, 1, 2], after)) == [2, 3, 3]


def racks_held(replicas: list[int], racks: dict[int, str]) -> int:
    return len({racks.get(broker, broker) for broker in replicas})


@given(assignments(), st.data())
def test_no_move_brings_replicas_closer_together_than_they_were(
    cluster_of: tuple[list[int], Assignment], data: st.DataObject
) -> None:
    brokers, before = cluster_of
    racks = {broker: data.draw(st.sampled_from(["here", "there"])) for broker in brokers}
    sizes = {partition: data.draw(st.integers(0, 100)) for partition in before}

    after = balanced(brokers, before, sizes, moves_max=20, racks=racks)

    for partition, replicas in before.items():
        assert racks_held(after[partition], racks) >= racks_held(replicas, racks)


def test_a_broker_is_filled_from_its_own_rack() -> None:
    before = {TopicPartition("t", n): [0, 1] for n in range(8)}
    racks = {0: "here", 1: "there", 2: "there"}

    after = balanced([0, 1, 2], before, dict.fromkeys(before, 10), moves_max=1000, racks=racks)

    assert all(0 in replicas for replicas in after.values())
    assert sum(2 in replicas for replicas in after.values()) == 4


@given(assignments())
def test_partitions_on_the_move_stay_as_they_are(cluster_of: tuple[list[int], Assignment]) -> None:
    brokers, before = cluster_of
    fixed = set(list(before)[::2])

    after = balanced(brokers, before, dict.fromkeys(before, 5), moves_max=1000, fixed=fixed)

    assert {p: after[p] for p in fixed} == {p: before[p] for p in fixed}
