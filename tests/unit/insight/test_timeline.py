"""Decisions of one cause are one incident, told in one sentence."""

from __future__ import annotations

from typing import Any

from ottla.insight.history.timeline import Timeline


def a_row(partition: str, before: tuple[int, ...], after: tuple[int, ...], **changes: Any) -> dict[str, Any]:
    """``before`` and ``after`` are a leader and its ISR."""
    return {
        "partition": partition,
        "kind": "decision",
        "rule": "offline partition",
        "before": {"leader": before[0], "leader_epoch": 1, "isr": list(before[1:])},
        "after": {"leader": after[0], "leader_epoch": 2, "isr": list(after[1:])},
        "cause": "broker 1 is gone",
        "controller": 0,
        "controller_epoch": 4,
        "time_ms": 1_000,
        **changes,
    }


def test_a_death_is_one_incident_however_many_partitions_it_moves() -> None:
    timeline = Timeline()

    timeline.take(a_row(f"orders-{n}", (1, 1, 0), (0, 0), time_ms=1_000 + 330 * n) for n in range(3))

    (incident,) = timeline.incidents
    assert incident.sentence() == "3 elections in 0.66 s, none unclean"
    assert incident.moves == {(1, 0): 3}
    assert incident.weight == "election"


def test_another_cause_or_a_long_pause_begins_another_incident() -> None:
    timeline = Timeline()

    timeline.take([
        a_row("a-0", (1, 1, 0), (0, 0)),
        a_row("a-1", (2, 2, 0), (0, 0), cause="broker 2 is gone"),
        a_row("a-2", (1, 1, 0), (0, 0), time_ms=60_000),
    ])  # fmt: skip

    assert [incident.began_ms for incident in timeline.incidents] == [1_000, 1_000, 60_000]


def test_time_without_a_leader_counts_for_the_incident_that_took_it() -> None:
    timeline = Timeline()

    timeline.take([
        a_row("a-0", (1, 1), (-1, 1)),
        a_row("a-0", (-1, 1), (1, 1), cause="broker 1 joined", time_ms=20_000),
    ])  # fmt: skip

    death, return_ = timeline.incidents
    assert (death.left_without_leader, death.without_leader_ms_max) == (1, 19_000)
    assert (death.weight, return_.weight) == ("offline", "election")
    assert "longest without leader 19 s" in death.sentence()


def test_unclean_elections_and_their_receipts_are_said_aloud() -> None:
    timeline = Timeline()
    receipt = {"partition": "a-0", "kind": "loss receipt", "cause": "broker 1 is gone", "controller": 0}

    timeline.take([
        a_row("a-0", (1, 1), (0, 0), rule="offline partition, unclean"),
        {**receipt, "controller_epoch": 4, "time_ms": 1_500},
    ])  # fmt: skip

    (incident,) = timeline.incidents
    assert incident.weight == "unclean"
    assert incident.sentence() == "1 election in 0.50 s, 1 UNCLEAN, 1 receipt of loss"


def test_changes_of_the_isr_alone_are_no_elections() -> None:
    timeline = Timeline()

    timeline.take([a_row("a-0", (0, 0, 1), (0, 0), rule="ISR change by the leader")])

    (incident,) = timeline.incidents
    assert (incident.elections, incident.isr_changes, incident.weight) == (0, 1, "quiet")


def test_a_span_of_time_shows_what_touches_it_newest_first() -> None:
    timeline = Timeline()
    timeline.take(a_row("a-0", (1, 1), (0, 0), cause=str(n), time_ms=n * 1_000) for n in range(5))

    assert [incident.cause for incident in timeline.between(1_000, 3_000)] == ["3", "2", "1"]


def test_the_oldest_incidents_are_forgotten() -> None:
    timeline = Timeline(kept=2)
    timeline.take(a_row("a-0", (1, 1), (0, 0), cause=str(n)) for n in range(5))

    assert [incident.cause for incident in timeline.incidents] == ["3", "4"]


def test_an_aborted_transaction_is_told_beside_the_elections() -> None:
    timeline = Timeline()
    fenced = {
        "kind": "transaction fenced",
        "transactional_id": "billing",
        "partitions": ["a-0", "a-1"],
        "cause": "it was open for longer than 60 s",
        "coordinator": 2,
        "controller_epoch": 4,
        "time_ms": 1_000,
    }

    timeline.take([fenced])

    (incident,) = timeline.incidents
    assert incident.sentence() == "1 transaction aborted"
    assert (incident.controller, incident.partitions) == (2, ["a-0", "a-1"])
    assert incident.weight == "quiet"
