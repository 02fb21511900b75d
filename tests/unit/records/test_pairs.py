"""Keys and values read in haste are those read with care, and what is unsound is refused by both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import HEADER_SIZE, BatchHeader, CorruptRecords, read_header
from ottla.records.builder import build_batch
from ottla.records.pairs import Pair, read_pairs
from ottla.records.record import Record, frames, records_area

PARTS = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from([b"k" * n for n in (62, 63, 64, 8_200)]))
RECORDS = st.builds(
    Record,
    key=PARTS,
    value=PARTS,
    headers=st.sampled_from([(), (("h", b"x"),)]),
    timestamp=st.sampled_from([0, 1, 100, 10**6, 10**12]),
)


def read_with_care(data: bytes, header: BatchHeader) -> list[Pair]:
    area = bytes(records_area(data, header))

    def part(start: int, length: int) -> bytes | None:
        return None if length < 0 else area[start : start + length]

    return [
        (part(frame.key_start, frame.key_length), part(frame.value_start, frame.value_length))
        for frame in frames(area, header.record_count)
    ]


def read_both(data: bytes) -> tuple[list[Pair] | None, list[Pair] | None]:
    """What each way of reading finds; None where it refuses."""
    header = read_header(data, 0)
    found: list[list[Pair] | None] = []
    for read in (read_pairs, read_with_care):
        try:
            found.append(read(data, header))
        except CorruptRecords:
            found.append(None)
    return found[0], found[1]


@given(records=st.lists(RECORDS, min_size=1, max_size=8))
def test_pairs_are_the_keys_and_values_of_the_records(records: list[Record]) -> None:
    in_haste, with_care = read_both(bytes(build_batch(records)))

    assert in_haste == with_care == [(record.key, record.value) for record in records]


@given(
    records=st.lists(RECORDS, min_size=1, max_size=4),
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_records_are_refused_or_read_alike(
    records: list[Record], changes: list[tuple[int, int]]
) -> None:
    data = build_batch(records)
    for place, byte in changes:
        data[HEADER_SIZE + place % (len(data) - HEADER_SIZE)] = byte
    in_haste, with_care = read_both(bytes(data))

    assert in_haste == with_care


def test_a_record_more_than_the_header_says_is_refused() -> None:
    data = build_batch([Record(b"a", b"1"), Record(b"b", b"2")])
    header = read_header(bytes(data), 0)._replace(record_count=1)

    with pytest.raises(CorruptRecords, match="left over"):
        read_pairs(bytes(data), header)
