"""Outages are told by what the controller decided: since when, until when, and because of what."""

from __future__ import annotations

from typing import Any

from ottla.spark.jobs.availability import BELOW_MIN_ISR, NO_LEADER, Outage, outages, told

NEEDED = {"orders-0": 2}
MINUTE = 60_000


def decided(minute: int, leader: int, isr: list[int], cause: str, *, is_new: bool = False) -> dict[str, Any]:
    after = {"leader": leader, "isr": isr}
    return {
        "kind": "decision",
        "partition": "orders-0",
        "before": None if is_new else {"leader": 1, "isr": [1, 2]},
        "after": after,
        "cause": cause,
        "time_ms": minute * MINUTE,
    }


NEW = decided(0, 1, [1, 2], "topic made", is_new=True)


def test_an_outage_ends_with_the_decision_that_mends_it() -> None:
    rows = [NEW, decided(3, 1, [1], "broker 2 died"), decided(5, 1, [1, 2], "broker 2 is back")]

    assert outages(rows, NEEDED) == [
        Outage("orders-0", BELOW_MIN_ISR, "broker 2 died", 3 * MINUTE, 5 * MINUTE)
    ]


def test_a_worse_one_begins_anew_with_its_own_cause() -> None:
    rows = [NEW, decided(3, 1, [1], "broker 2 died"), decided(5, -1, [1], "broker 1 died")]

    assert outages(rows, NEEDED) == [
        Outage("orders-0", BELOW_MIN_ISR, "broker 2 died", 3 * MINUTE, 5 * MINUTE),
        Outage("orders-0", NO_LEADER, "broker 1 died", 5 * MINUTE, None),
    ]


def test_one_that_goes_on_keeps_its_first_cause() -> None:
    rows = [NEW, decided(3, -1, [1], "broker 1 died"), decided(5, -1, [1], "controller changed")]

    assert outages(rows, NEEDED) == [Outage("orders-0", NO_LEADER, "broker 1 died", 3 * MINUTE, None)]


def test_a_topic_of_the_same_name_that_was_deleted_is_not_counted() -> None:
    rows = [NEW, decided(3, -1, [1], "broker 1 died"), NEW]

    assert outages(rows, NEEDED) == []
    assert outages([decided(3, -1, [1], "broker 1 died")], {}) == []


def test_minutes_are_summed_by_cause_and_an_outage_that_lasts_is_not_well() -> None:
    found = [
        Outage("orders-0", NO_LEADER, "broker 1 died", 0, 3 * MINUTE),
        Outage("orders-1", NO_LEADER, "broker 1 died", 0, None),
    ]

    report = told(found, 2, 5 * MINUTE)

    assert report.headline == (
        "2 partitions: 8.0 minutes without a leader, 0.0 minutes below min ISR; 1 outages last"
    )
    assert report.tables[0].rows == [(NO_LEADER, "broker 1 died", 2, "8.0", 1)]
    assert not report.is_well
    assert told(found[:1], 2, 5 * MINUTE).is_well
