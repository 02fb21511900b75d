"""Ranges are split and limited without losing or repeating an offset."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.spark.read.ranges import OffsetRange, limited, split_ranges

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
