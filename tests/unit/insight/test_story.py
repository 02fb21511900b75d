"""``ottla explain``: known histories give the known answer."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.insight.history.losses import Loss, losses
from ottla.insight.history.records import is_told, this_life
from ottla.insight.history.story import history_lines, now_lines, preferred
from ottla.insight.picture import PartitionNow
from ottla.insight.what_if import what_if


def a_state(leader: int, epoch: int, *isr: int) -> dict[str, Any]:
    return {"leader": leader, "leader_epoch": epoch, "isr": list(isr)}


def a_decision(
    rule: str,
    before: dict[str, Any] | None,
    after: dict[str, Any],
    *,
    time_ms: int = 0,
    controller_epoch: int = 1,
    cause: str = "broker 0 died",
) -> dict[str, Any]:
    return {
        "partition": "orders-0",
        "kind": "decision",
        "rule": rule,
        "before": before,
        "after": after,
        "candidates": [
            {"broker": 0, "online": False, "in_sync": True},
            {"broker": 1, "online": True, "in_sync": True},
        ],
        "chosen": after["leader"],
        "why": None,
        "cause": cause,
        "controller": 2,
        "controller_epoch": controller_epoch,
        "time_ms": time_ms,
    }


BORN = a_decision("new partition", None, a_state(0, 0, 0, 1, 2), cause="topic orders created")
CRASHED = a_decision("offline partition", a_state(0, 0, 0, 1, 2), a_state(1, 1, 1, 2), time_ms=5_000)


def test_what_a_new_controller_found_is_told_with_whose_death_it_was() -> None:
    found = a_decision(
        "offline partition", a_state(0, 0, 0, 1, 2), a_state(1, 1, 1, 2), cause="broker 1 took office"
    )

    assert (
        "      cause: broker 1 took office and found broker 0 not alive; decided by controller 2,"
        " controller epoch 1"
    ) in history_lines([BORN, found], with_isr=False)
    assert "       broker 1 took office and found broker 0 not alive" in now_lines(
        a_partition(), [BORN, found]
    )


def a_partition(leader: int = 1, epoch: int = 1, **changes: Any) -> PartitionNow:
    fields: dict[str, Any] = {
        "name": "orders-0",
        "leader": leader,
        "leader_epoch": epoch,
        "replicas": (0, 1, 2),
        "isr": (1, 2),
        "live": frozenset({1, 2}),
    }
    return PartitionNow(**{**fields, **changes})


def test_a_crash_is_told_with_rule_candidates_and_cause() -> None:
    lines = history_lines([BORN, CRASHED], with_isr=False)

    assert lines[4:] == [
        "  1970-01-01 00:00:05.000  broker 1 leads (was broker 0), epoch 1, in sync 1,2",
        "      rule: leader offline: the first replica that is online and in sync",
        "      candidates: 0 offline, in sync; 1 online, in sync",
        "      cause: broker 0 died; decided by controller 2, controller epoch 1",
    ]


def test_the_last_election_is_the_reason_for_the_present_leader() -> None:
    lines = now_lines(a_partition(), [BORN, CRASHED])

    assert lines == [
        "orders-0 is led by broker 1 since 1970-01-01 00:00:05.000 (leader epoch 1)",
        "  replicas 0,1,2; in sync 1,2",
        "  the preferred leader 0 is not alive",
        "  why: leader offline: the first replica that is online and in sync",
        "       broker 0 died",
    ]


def test_an_epoch_that_no_decision_tells_of_was_decided_elsewhere() -> None:
    now = a_partition(epoch=3)

    assert not is_told(now, [BORN, CRASHED])
    why = now_lines(now, [BORN, CRASHED])[-1]
    assert "leader epochs 2 to 3 decided by an Apache controller, inferred from znodes" in why


def test_an_epoch_missing_in_the_middle_is_named() -> None:
    later = a_decision("preferred replica", a_state(1, 3, 0, 1, 2), a_state(0, 4, 0, 1, 2))

    skipped = "leader epochs 2 to 3 decided by an Apache controller, inferred from znodes"
    lines = history_lines([BORN, CRASHED, later], with_isr=False)
    assert [line for line in lines if line.startswith(f"  ({skipped}")]


def test_time_without_a_leader_is_measured_from_decision_to_decision() -> None:
    gone = a_decision("offline partition", a_state(0, 0, 0), a_state(-1, 1, 0), time_ms=1_000)
    back = a_decision("offline partition", a_state(-1, 1, 0), a_state(0, 2, 0), time_ms=3_500)

    lines = history_lines([gone, back], with_isr=False)

    assert lines[0].startswith("  1970-01-01 00:00:01.000  nobody leads (was broker 0)")
    assert lines[-1] == "      2.500 s without a leader"


def test_an_unclean_election_comes_with_what_may_be_lost() -> None:
    receipt = {
        "kind": "loss receipt",
        "leader_epoch": 2,
        "old_isr": [0],
        "new_leader": 1,
        "may_be_lost": {"from": 7, "until": None},
        "time_ms": 0,
    }
    cut = {
        "kind": "log cut",
        "broker": 0,
        "leader": 1,
        "leader_epoch": 2,
        "lost": {"from": 7, "until": 9},
        "was_committed": True,
        "time_ms": 0,
    }

    lines = history_lines([receipt, cut], with_isr=False)

    assert "LOSS RECEIPT of epoch 2: acknowledged records from offset 7 on may be lost" in lines[0]
    assert lines[2] == "      COMPLETE: broker 0 came back and cut offsets 7 to 8: what it alone had is gone"
    assert "broker 0 cut offsets 7 to 8 (committed) to agree with leader 1, epoch 2" in lines[3]


RECEIPT = {
    "kind": "loss receipt",
    "leader_epoch": 2,
    "old_isr": [0],
    "new_leader": 1,
    "may_be_lost": {"from": 7, "until": None},
    "old_high_watermark_at_least": None,
    "time_ms": 0,
}


def a_cut(broker: int, epoch: int, start: int, until: int) -> dict[str, Any]:
    return {
        "kind": "log cut",
        "broker": broker,
        "leader": 1,
        "leader_epoch": epoch,
        "lost": {"from": start, "until": until},
        "was_committed": None,
        "time_ms": 0,
    }


@pytest.mark.parametrize(
    ("cuts", "until", "cut_by"),
    [
        ([], None, None),
        ([a_cut(0, 2, 7, 9)], 9, 0),
        ([a_cut(0, 5, 7, 9)], 9, 0),  # it came back after another election
        ([a_cut(0, 1, 5, 6)], None, None),  # an older story
        ([a_cut(2, 2, 7, 9)], None, None),  # it was not in sync either
        ([a_cut(0, 4, 30, 33)], None, None),  # a later story
    ],
)
def test_a_receipt_is_completed_by_the_cut_that_belongs_to_it(
    cuts: list[dict[str, Any]], until: int | None, cut_by: int | None
) -> None:
    assert losses([RECEIPT, *cuts]) == [Loss(2, 7, until, None, cut_by)]


def test_the_new_leader_knows_better_than_its_controller_where_the_loss_begins() -> None:
    """It had been replaced and did not know it: the end of its log was its own."""
    start = {
        "kind": "unclean start",
        "leader_epoch": 2,
        "new_leader": 1,
        "may_be_lost": {"from": 4, "until": None},
        "old_high_watermark_at_least": 4,
        "time_ms": 0,
    }

    assert losses([RECEIPT, start]) == [Loss(2, 4, None, 4, None)]
    assert losses([RECEIPT, start, a_cut(0, 2, 6, 9)]) == [Loss(2, 6, 9, 4, 0)]


def test_the_new_leaders_word_adds_what_it_had_heard_and_stands_alone_under_an_apache_controller() -> None:
    start = {
        "kind": "unclean start",
        "leader_epoch": 2,
        "new_leader": 1,
        "may_be_lost": {"from": 7, "until": None},
        "old_high_watermark_at_least": 12,
        "time_ms": 0,
    }

    both = history_lines([RECEIPT, start], with_isr=False)
    alone = history_lines([start], with_isr=False)

    assert losses([RECEIPT, start]) == [Loss(2, 7, None, 12, None)]
    assert sum("LOSS RECEIPT" in line for line in both) == 1
    assert "      offsets below 12 are known to have been committed" in both
    assert "LOSS RECEIPT of epoch 2" in alone[0]


def test_changes_of_the_isr_alone_are_told_only_when_asked_for() -> None:
    shrunk = a_decision("ISR change by the leader", a_state(1, 1, 1, 2), a_state(1, 1, 1))

    assert history_lines([shrunk], with_isr=False) == []
    assert len(history_lines([shrunk], with_isr=True)) == 4


def test_a_topic_deleted_before_has_no_part_in_the_story() -> None:
    assert this_life([BORN, CRASHED, BORN]) == [BORN]


def test_a_controller_that_wrote_late_is_told_in_its_turn() -> None:
    second = a_decision("offline partition", a_state(0, 0, 0, 1), a_state(1, 1, 1), controller_epoch=2)

    assert this_life([second, BORN]) == [BORN, second]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"leader": 0, "live": frozenset({0, 1})}, "broker 0 is the preferred leader"),
        ({}, "the preferred leader 0 is not alive"),
        ({"live": frozenset({0, 1, 2})}, "the preferred leader 0 is not in sync"),
        (
            {"live": frozenset({0, 1, 2}), "isr": (0, 1, 2)},
            "the preferred leader 0 could lead: `ottla leader-election` gives it back",
        ),
    ],
)
def test_what_keeps_the_preferred_leader_from_leading(changes: dict[str, Any], words: str) -> None:
    assert preferred(a_partition(**changes)) == words


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        (
            {"min_isr": 2},
            {
                0: "is not alive already",
                1: "broker 2 would lead, in sync 2; writes with acks=all would be refused",
                2: "broker 1 goes on leading, in sync 1; writes with acks=all would be refused",
            },
        ),
        (
            {"isr": (1,), "live": frozenset({0, 1, 2})},
            {
                0: "nothing: it is not in sync and does not lead",
                1: "the partition would be offline: no in-sync replica is online and unclean election is not"
                " allowed",
                2: "nothing: it is not in sync and does not lead",
            },
        ),
        (
            {"isr": (1,), "live": frozenset({0, 1}), "is_unclean_allowed": True},
            {
                0: "nothing: it is not in sync and does not lead",
                1: "broker 0 would lead, in sync 0; RECORDS COULD BE LOST (unclean)",
                2: "is not alive already",
            },
        ),
    ],
)
def test_what_would_happen_if_each_replica_died(changes: dict[str, Any], answers: dict[int, str]) -> None:
    assert what_if(a_partition(**changes)) == answers
