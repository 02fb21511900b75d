"""Even shares, groups that lag, settings that differ."""

from __future__ import annotations

import pytest

from ottla.insight.config_diff import Difference, against_defaults, differences
from ottla.insight.lag import CLEAR, FALLING, RISING, STALLED, Point, Window
from ottla.insight.skew import skew_of
from ottla.model.ids import TopicPartition
from support.client.pictures import a_picture


def test_skew_is_told_against_the_even_share() -> None:
    seen = a_picture({"a-0": (0, (0, 1), (0, 1)), "a-1": (0, (1, 0), (1, 0)), "a-2": (0, (0, 2), (0, 2))})

    skew = skew_of(seen, {(TopicPartition("a", 0), 0): 300})

    assert [share.leaders for share in skew.shares] == [3, 0, 0]
    assert (skew.leaders_even, skew.replicas_even, skew.leader_skew()) == (1.0, 2.0, 2.0)
    assert (skew.shares[0].bytes, skew.bytes_even) == (300, 100.0)
    assert skew.not_preferred == 1


def test_two_replicas_in_one_rack_are_a_violation_where_another_rack_has_none() -> None:
    racks = {0: "a", 1: "a", 2: "b"}
    seen = a_picture({"t-0": (0, (0, 1), (0, 1)), "t-1": (0, (0, 2), (0, 2))}, racks=racks)

    assert skew_of(seen).racks_violated == ["t-0"]


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ([(0, 10, 20), (1, 10, 25), (2, 10, 30)], STALLED),
        ([(0, 10, 20), (1, 12, 25), (2, 14, 30)], RISING),
        ([(0, 10, 30), (1, 18, 31), (2, 25, 32)], FALLING),
        ([(0, 10, 30), (1, 30, 30), (2, 32, 32)], CLEAR),
        ([(0, 10, 30), (1, 18, 31)], None),
    ],
)
def test_a_window_gives_the_verdict_without_thresholds(
    points: list[tuple[int, int, int]], verdict: str | None
) -> None:
    window = Window()
    for second, committed, end in points:
        window.take(Point(second * 1000, committed, end))

    assert window.verdict() == verdict


def test_lag_in_seconds_is_when_the_log_ended_where_the_group_stands() -> None:
    window = Window()
    for second in range(5):
        window.take(Point(second * 1000, second * 5, second * 10))

    assert window.seconds_behind() == 2.0
    assert window.seconds_to_clear() is None


def test_time_to_clear_is_at_the_pace_of_the_window() -> None:
    window = Window()
    window.take(Point(0, 0, 100))
    window.take(Point(10_000, 60, 110))

    assert window.seconds_to_clear() == 10.0


def test_looks_that_are_too_old_go() -> None:
    window = Window(window_ms=1_000)
    for second in range(5):
        window.take(Point(second * 1000, 0, 0))

    assert [point.time_ms for point in window.points] == [3_000, 4_000]


def test_settings_that_are_not_the_same_everywhere_are_named() -> None:
    sides = {"0": {"a": "1", "b": "2", "id": "0"}, "1": {"a": "1", "b": "3", "id": "1", "c": "4"}}

    assert differences(sides, but=frozenset({"id"})) == [
        Difference("b", {"0": "2", "1": "3"}),
        Difference("c", {"1": "4"}),
    ]
    assert against_defaults({"a": "1", "b": "2"}, {"a": "1", "b": "1"}) == [
        Difference("b", {"set": "2", "default": "1"})
    ]
