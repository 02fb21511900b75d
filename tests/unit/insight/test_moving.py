"""Plans of moves: even shares with few moves, racks kept apart, factors changed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.admin.configs import ConfigOperation, ResourceType
from ottla.insight.moving import plan_even, plan_factor, plan_from_text, throttle_changes, throttled_moves
from ottla.insight.plan import CannotMove, Plan
from ottla.model.ids import TopicPartition

THREE = dict.fromkeys(range(3))
SET = ConfigOperation.SET


def plan_of(*replicas: tuple[int, ...]) -> Plan:
    return {TopicPartition("t", number): holders for number, holders in enumerate(replicas)}


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    present = plan_of(*[(0, 1), (1, 0)] * 6)

    moved = plan_even(present, THREE)

    held = Counter(broker for replicas in {**present, **moved}.values() for broker in replicas)
    first = Counter(replicas[0] for replicas in {**present, **moved}.values())
    assert held == {0: 8, 1: 8, 2: 8}
    assert first == {0: 4, 1: 4, 2: 4}
    assert sum(2 in replicas for replicas in moved.values()) == 8


def test_what_is_even_stays() -> None:
    assert plan_even(plan_of((0, 1), (1, 2), (2, 0)), THREE) == {}


def test_replicas_do_not_move_into_a_rack_that_has_the_partition() -> None:
    racks = {0: "x", 1: "y", 2: "y"}

    moved = plan_even(plan_of(*[(0, 1)] * 4), racks)

    assert Counter(replicas for replicas in moved.values() if 2 in replicas).total() == 2
    assert not any({1, 2} <= set(replicas) for replicas in moved.values())


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), max_size=30),
    st.integers(1, 5),
)
def test_even_plans_end_keep_the_number_of_replicas_and_name_only_live_brokers(
    rows: list[list[int]], live: int
) -> None:
    present = plan_of(*map(tuple, rows))
    racks = dict.fromkeys(range(live))

    moved = plan_even(present, racks)

    for name, replicas in moved.items():
        assert len(set(replicas)) == len(replicas) == len(present[name])
        assert set(replicas) - set(present[name]) <= set(racks)
    held = Counter(broker for replicas in {**present, **moved}.values() for broker in replicas)
    loads = [held[broker] for broker in racks]
    before = Counter(broker for replicas in present.values() for broker in replicas)
    assert max(loads) - min(loads) <= max(before[b] for b in racks) - min(before[b] for b in racks)


def test_more_replicas_go_where_fewest_are_in_a_rack_without_any() -> None:
    racks = {0: "x", 1: "x", 2: "y"}

    assert plan_factor(plan_of((0,), (2,)), 2, racks) == plan_of((0, 2), (2, 1))


def test_fewer_replicas_keep_the_first_ones() -> None:
    assert plan_factor(plan_of((2, 0, 1), (1,)), 1, THREE) == plan_of((2,))


def test_no_more_replicas_than_live_brokers() -> None:
    assert isinstance(plan_factor(plan_of((0,)), 4, THREE), CannotMove)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"partitions": 1}',
        '{"partitions": [{"topic": "t"}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}',
    ],
)
def test_a_plan_that_is_none_is_refused_with_the_form(text: str) -> None:
    assert isinstance(plan_from_text(text), CannotMove)


def test_a_throttle_names_who_sends_and_who_fetches() -> None:
    t0 = TopicPartition("t", 0)

    moves = throttled_moves({t0: (1, 2)}, {t0: (0, 1)}, {})

    rates, replicas = throttle_changes(moves, 5, live=[0, 1])
    both = {
        "leader.replication.throttled.rate": (SET, "5"),
        "follower.replication.throttled.rate": (SET, "5"),
    }
    assert rates == {(ResourceType.BROKER, "0"): both, (ResourceType.BROKER, "1"): both}
    assert replicas == {
        (ResourceType.TOPIC, "t"): {
            "leader.replication.throttled.replicas": (SET, "0:0,0:1"),
            "follower.replication.throttled.replicas": (SET, "0:2"),
        }
    }
