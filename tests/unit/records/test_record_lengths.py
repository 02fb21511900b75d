"""Records that do not fill their batch are found without a look at each, and sound ones always pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import CorruptRecords
from ottla.records.record import read_frame, write_record
from ottla.records.record_lengths import offset_deltas
from ottla.records.varint import read_varint

sizes = st.sampled_from([0, 1, 5, 50, 62, 63, 64, 127, 128, 300, 8_170, 9_000])
shapes = st.lists(
    st.tuples(
        st.none() | sizes, st.none() | sizes, st.integers(0, 2), st.sampled_from([-5, 0, 63, 64, 9_000])
    ),
    min_size=1,
    max_size=12,
)


def an_area(shapes: list[tuple[int | None, int | None, int, int]], repeated: int = 1) -> bytes:
    area = bytearray()
    for at, (key, value, headers, timestamp) in enumerate(
        [shape for shape in shapes for _ in range(repeated)]
    ):
        key_bytes = None if key is None else b"k" * key
        value_bytes = None if value is None else b"v" * value
        write_record(area, timestamp, at, key_bytes, value_bytes, (("h", b"x"),) * headers)
    return bytes(area)


def ends_of(area: bytes) -> list[int]:
    """Where each record ends, by the plain way; raises unless they fill the area."""
    ends, position = [], 0
    while position < len(area):
        length, position = read_varint(area, position)
        position += length
        if length < 0 or position > len(area):
            raise CorruptRecords("a record that does not fit")
        ends.append(position)
    return ends


@given(shapes, st.integers(1, 40), st.sampled_from([bytes, bytearray, memoryview]))
def test_sound_records_are_sound(
    shapes: list[tuple[int | None, int | None, int, int]], repeated: int, kind: type
) -> None:
    area = an_area(shapes, repeated)
    count = len(shapes) * repeated

    assert offset_deltas(kind(b"before" + area + b"behind"), 6, 6 + len(area), count) == (0, count - 1)


@given(
    shapes,
    st.integers(1, 40),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=3),
    st.integers(-3, 3),
    st.integers(-2, 2),
)
def test_what_passes_as_sound_fills_its_batch(
    shapes: list[tuple[int | None, int | None, int, int]],
    repeated: int,
    spoiled: list[tuple[float, int]],
    length_change: int,
    count_change: int,
) -> None:
    area = bytearray(an_area(shapes, repeated))
    for place, byte in spoiled:
        area[int(place * len(area))] = byte
    if length_change < 0:
        del area[length_change:]
    area += bytes(max(0, length_change))
    count = max(1, len(shapes) * repeated + count_change)
    try:
        offset_deltas(area, 0, len(area), count)
    except CorruptRecords:
        return

    ends = ends_of(bytes(area))
    assert len(ends) == count
    assert read_frame(bytes(area), 0).end == ends[0]
    assert read_frame(bytes(area), ends[-2] if count > 1 else 0).end == len(area)


@pytest.mark.parametrize("count", [4, 9, 40, 2_000])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_count_is_found_among_records_of_one_size(count: int, change: int) -> None:
    area = an_area([(8, 100, 0, 0)], count)

    with pytest.raises(CorruptRecords):
        offset_deltas(area, 0, len(area), count + change)


@pytest.mark.parametrize("at", [0, 1, 17, 33, 1_998, 1_999])
@pytest.mark.parametrize("key", [8, 9_000])
def test_one_wrong_length_is_found_among_records_of_one_size(at: int, key: int) -> None:
    area = bytearray(an_area([(key, 100, 0, 0)], 2_000))
    start = ([0, *ends_of(bytes(area))])[at]
    area[start] ^= 0x04

    with pytest.raises(CorruptRecords):
        offset_deltas(area, 0, len(area), 2_000)


@pytest.mark.parametrize("end", ["first", "last"])
def test_a_record_at_either_end_that_is_not_sound_inside_is_found(end: str) -> None:
    area = bytearray(an_area([(8, 100, 0, 0)], 50))
    ends = ends_of(bytes(area))
    area[(ends[0] if end == "first" else ends[-1]) - 1] = 2

    with pytest.raises(CorruptRecords):
        offset_deltas(area, 0, len(area), 50)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param([0x8A, 0, 0, 0x80, 0, 0x88, 0], id="its parts reach behind the last byte of all"),
        pytest.param([0x90, 0x80, 0, 0, 0, 1, 6, 7, 7, 7, 0], id="its length takes a byte more than need be"),
    ],
)
def test_last_record_that_only_seems_short_is_read_whole(record: list[int]) -> None:
    area = an_area([(1, 1, 0, 0)], 4) + bytes(record)

    with pytest.raises(CorruptRecords):
        offset_deltas(area, 0, len(area), 5)
