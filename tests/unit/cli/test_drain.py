"""Where a drained broker's replicas go."""

from __future__ import annotations

import pytest

from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.tools.drain import plan_drain
from ottla.model.ids import TopicPartition


def partitions(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): held for number, held in enumerate(replicas)}


def test_the_emptiest_broker_takes_the_place_and_the_order_stays() -> None:
    plan = plan_drain(partitions((0, 1), (1, 0), (1, 2)), 0, [0, 1, 2, 3])

    assert plan == {TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (1, 2)}


def test_leaderships_are_spread_over_those_that_stay() -> None:
    plan = plan_drain(partitions(*[(0, 1)] * 6), 0, [0, 1, 2, 3])

    preferred = [replicas[0] for replicas in plan.values()]
    assert {number: preferred.count(number) for number in (2, 3)} == {2: 3, 3: 3}


def test_a_partition_on_all_other_brokers_is_refused_and_nothing_is_planned() -> None:
    with pytest.raises(CommandRefused, match="t-0 has 3 replicas and there are only 2 other live brokers"):
        plan_drain(partitions((0, 1, 2)), 0, [0, 1, 2])


def test_a_dead_broker_can_be_drained() -> None:
    assert plan_drain(partitions((0, 1)), 0, [1, 2]) == {TopicPartition("t", 0): (2, 1)}
