"""May a broker leave? The answer follows from what the controller would do to each partition."""

from __future__ import annotations

import pytest

from ottla.insight.leaving import may_leave
from ottla.insight.survival import survival
from support.client.pictures import a_picture

ALL = (0, 1, 2)


def test_a_broker_whose_partitions_are_all_in_sync_may_leave() -> None:
    leaving = may_leave(a_picture({"a-0": (1, (1, 2, 0), ALL), "a-1": (0, (0, 1, 2), ALL)}), 1)

    assert leaving.verdict == "yes"
    assert leaving.sentence() == "Yes: 1 leadership would move, and no partition minds."
    assert leaving.goes_to == {2: 1}


@pytest.mark.parametrize("crash", [False, True])
def test_the_only_replica_in_sync_says_no(crash: bool) -> None:
    leaving = may_leave(a_picture({"a-0": (1, (1, 2, 0), (1,))}), 1, crash=crash)

    assert leaving.verdict == "no"
    assert leaving.sentence() == "No: 1 partition would be offline (a-0)."
    assert "no in-sync replica is online" in leaving.objections[0].why


def test_an_unclean_election_would_lose_records() -> None:
    leaving = may_leave(a_picture({"a-0": (1, (1, 2), (1,))}, is_unclean_allowed=True), 1)

    assert leaving.sentence() == "No: 1 partition would lose records to an unclean election (a-0)."


def test_a_follower_may_be_the_one_that_acks_all_needs() -> None:
    leaving = may_leave(a_picture({"a-0": (0, (0, 1, 2), (0, 1))}, min_isr=2), 1)

    assert leaving.sentence() == "No: 1 partition would refuse writes with acks=all (a-0)."


def test_a_single_replica_left_in_sync_is_a_yes_with_a_but() -> None:
    leaving = may_leave(a_picture({"a-0": (0, (0, 1, 2), (0, 1))}), 1)

    assert leaving.verdict == "careful"
    assert leaving.sentence() == (
        "Yes, but 1 partition would have a single replica in sync (a-0): the next failure would stop them."
    )


def test_a_replica_that_is_behind_does_not_count() -> None:
    """The partition refuses writes already, with this broker and without it."""
    assert may_leave(a_picture({"a-0": (0, (0, 1, 2), (0,))}, min_isr=2), 1).verdict == "yes"


def test_coordinators_that_move_are_counted() -> None:
    seen = a_picture(
        {"__consumer_offsets-3": (1, (1, 2, 0), ALL), "__transaction_state-0": (1, (1, 0), (1, 0))}
    )

    leaving = may_leave(seen, 1)

    assert (leaving.group_coordinators, leaving.transaction_coordinators) == (1, 1)


def test_of_a_broker_that_is_not_alive_nothing_is_asked() -> None:
    assert (
        may_leave(a_picture({"a-0": (0, (0, 1), (0,))}, live=(0, 2)), 1).sentence()
        == "Broker 1 is not alive."
    )


@pytest.mark.parametrize(
    ("partition", "min_isr", "sentence"),
    [
        ((0, ALL, ALL), 1, "Every partition survives the loss of any one broker."),
        ((0, ALL, (0,)), 1, "1 partition can survive no further failure."),
        ((0, ALL, (0, 1)), 2, "1 partition would refuse writes with acks=all after one more failure."),
        ((0, ALL, (0,)), 2, "1 partition refuses writes with acks=all."),
        ((-1, ALL, (1,)), 1, "1 partition is offline."),
    ],
)
def test_the_first_sentence_of_the_console_is_the_worst_that_is_so(
    partition: tuple[int, tuple[int, ...], tuple[int, ...]], min_isr: int, sentence: str
) -> None:
    assert survival(a_picture({"a-0": partition}, min_isr=min_isr)).sentence() == sentence
