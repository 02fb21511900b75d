"""Ranges are split and limited without losing or repeating an offset; plans move little."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.spark.jobs.plan import Assignment, bytes_on, even_bytes, even_leaders, leaders_on
from ottla.spark.ranges import OffsetRange, limited, split_ranges

A, B, C = (TopicPartition("orders", number) for number in range(3))
SIZES = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 500)), min_size=1, max_size=6)


@given(SIZES, st.one_of(st.none(), st.integers(1, 40)), st.one_of(st.none(), st.integers(1, 60)))
def test_pieces_cover_exactly_the_ranges(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    whole = [
        OffsetRange(TopicPartition("t", n), start, start + size) for n, (start, size) in enumerate(sizes)
    ]

    pieces = split_ranges(whole, min_partitions, max_records)

    covered = [(piece.partition, offset) for piece in pieces for offset in range(piece.start, piece.end)]
    assert covered == [(one.partition, offset) for one in whole for offset in range(one.start, one.end)]
    if max_records is not None:
        assert all(piece.size <= max_records for piece in pieces)


def test_large_ranges_are_split_until_there_are_enough() -> None:
    pieces = split_ranges([OffsetRange(A, 0, 900), OffsetRange(B, 0, 100)], 4, None)

    assert [(piece.partition, piece.start, piece.end) for piece in pieces] == [
        (A, 0, 300),
        (A, 300, 600),
        (A, 600, 900),
        (B, 0, 100),
    ]


def test_a_limit_is_shared_by_size_and_starves_nobody() -> None:
    start, end = {A: 0, B: 10, C: 5}, {A: 900, B: 110, C: 6}

    assert limited(100, start, end) == {A: 89, B: 19, C: 6}


def test_what_is_below_the_limit_stays_as_it_is() -> None:
    assert limited(100, {A: 0}, {A: 99}) == {A: 99}


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(0, 6))
def test_a_plan_never_makes_the_fullest_broker_fuller(sizes: list[int], moves_max: int) -> None:
    partitions = [TopicPartition("t", number) for number in range(len(sizes))]
    before: Assignment = {partition: [0, 1] for partition in partitions}
    by_partition = dict(zip(partitions, sizes, strict=True))

    after = even_leaders([0, 1, 2], even_bytes([0, 1, 2], before, by_partition, moves_max))

    fullest = max(bytes_on(broker, before, by_partition) for broker in range(3))
    assert max(bytes_on(broker, after, by_partition) for broker in range(3)) <= fullest
    assert all(len(set(replicas)) == 2 for replicas in after.values())
    assert sum(len(set(after[p]) - {0, 1}) for p in after) <= moves_max


def test_leaders_are_evened_out_without_moving_a_replica() -> None:
    before: Assignment = {partition: [0, 1, 2] for partition in (A, B, C)}

    after = even_leaders([0, 1, 2], before)

    assert [leaders_on(broker, after) for broker in range(3)] == [1, 1, 1]
    assert all(sorted(replicas) == [0, 1, 2] for replicas in after.values())
