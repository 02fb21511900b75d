"""The leader-epoch cache: Kafka's rules as a table, and as a model of all that could be asked."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.log.leader_epochs import EpochEntry, LeaderEpochs

ASSIGNMENTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 60)), max_size=15)


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(*entry) for entry in entries])


KNOWN = ((1, 0), (3, 20), (7, 50))


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (3, 50)),
        (5, (3, 50)),
        (7, (7, 80)),
        (8, (-1, -1)),
    ],
)
def test_end_of_an_epoch_is_the_start_of_the_next_known_one(requested: int, answer: tuple[int, int]) -> None:
    assert epochs(*KNOWN).end_offset_for(requested, 80) == answer


def test_no_epoch_known_answers_undefined() -> None:
    assert LeaderEpochs().end_offset_for(3, 80) == (-1, -1)


def test_leader_without_data_still_ends_the_epoch_before_it() -> None:
    """KAFKA-7415: a new leader that wrote nothing must answer for older epochs."""
    cache = epochs((1, 0))

    cache.assign(2, 10)

    assert cache.end_offset_for(1, 10) == (1, 10)


def test_epoch_zero_is_an_epoch_like_any_other() -> None:
    """KAFKA-10432."""
    cache = LeaderEpochs()

    cache.assign(0, 0)

    assert cache.entries() == [(0, 0)]


def test_same_epoch_at_a_later_offset_changes_nothing() -> None:
    cache = epochs(*KNOWN)

    assert not cache.assign(7, 55)
    assert not cache.dirty
    assert cache.entries() == list(KNOWN)


@pytest.mark.parametrize(
    ("assigned", "left"),
    [
        ((8, 60), [*KNOWN, (8, 60)]),
        ((8, 30), [(1, 0), (3, 20), (8, 30)]),
        ((5, 90), [(1, 0), (3, 20), (5, 90)]),
        ((7, 40), [(1, 0), (3, 20), (7, 40)]),
    ],
)
def test_assignment_removes_what_it_contradicts(
    assigned: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    cache = epochs(*KNOWN)

    cache.assign(*assigned)

    assert cache.entries() == left


@pytest.mark.parametrize(
    ("start", "left"),
    [(0, [*KNOWN]), (10, [(1, 10), (3, 20), (7, 50)]), (20, [(3, 20), (7, 50)]), (60, [(7, 60)])],
)
def test_truncation_from_the_start_keeps_the_epoch_that_covers_it(
    start: int, left: list[tuple[int, int]]
) -> None:
    cache = epochs(*KNOWN)

    cache.truncate_from_start(start)

    assert cache.entries() == left


@given(ASSIGNMENTS, st.integers(0, 60), st.integers(0, 60))
def test_both_columns_always_rise(assignments: list[tuple[int, int]], end: int, start: int) -> None:
    cache = LeaderEpochs()
    for epoch, offset in assignments:
        cache.assign(epoch, offset)
        entries = cache.entries()
        assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))
        assert entries[-1] == (epoch, offset) or (
            entries[-1].epoch == epoch and entries[-1].start_offset <= offset
        )

    cache.truncate_from_end(end)
    assert all(entry.start_offset < end for entry in cache.entries())
    cache.truncate_from_start(start)
    assert sum(entry.start_offset <= start for entry in cache.entries()) <= 1


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40).map(sorted), st.integers(0, 8))
def test_answers_agree_with_the_log_itself(epoch_of_offset: list[int], requested: int) -> None:
    cache = LeaderEpochs()
    for offset, epoch in enumerate(epoch_of_offset):
        if epoch != cache.latest_epoch:
            cache.assign(epoch, offset)
    end = len(epoch_of_offset)

    epoch, end_offset = cache.end_offset_for(requested, end)

    if requested > epoch_of_offset[-1]:
        assert (epoch, end_offset) == (-1, -1)
    else:
        assert end_offset == sum(each <= requested for each in epoch_of_offset)
    assert [cache.epoch_for_offset(offset) for offset in range(end)] == epoch_of_offset
