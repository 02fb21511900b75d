"""Batch headers: what is written is read, and not one flipped bit goes unseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import (
    CRC_STARTS_AT,
    HEADER_SIZE,
    SEQUENCE_MAX,
    BatchHeader,
    CorruptRecords,
    UnsupportedMagic,
    advance_sequence,
    batches,
    crc_is_valid,
    read_header,
    stamp,
    write_header,
)
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record, read_records

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)


def a_batch(count: int = 3, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch(
        [Record(b"key", b"value %d" % at, timestamp=100 + at) for at in range(count)], codec=codec
    )


@given(
    st.tuples(INT64, st.integers(49, 2**31 - 1), INT32),
    st.integers(0, 2**32 - 1),
    st.tuples(INT16, INT32, INT64, INT64, INT64, INT16, INT32, INT32),
)
def test_header_written_is_the_header_read(
    front: tuple[int, int, int], crc: int, rest: tuple[int, ...]
) -> None:
    header = BatchHeader(0, *front, 2, crc, *rest)
    space = bytearray(HEADER_SIZE)

    write_header(space, header)

    assert read_header(space) == header


@pytest.mark.parametrize("codec", list(Codec))
def test_every_single_flipped_bit_of_a_batch_is_found(codec: Codec) -> None:
    sound = bytes(a_batch(codec=codec))
    original = read_header(sound)

    for bit in range(8 * len(sound)):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << (bit % 8)
        try:
            header = read_header(flipped)
        except CorruptRecords:
            continue
        is_whole = header.size == len(flipped)
        is_same = is_whole and crc_is_valid(flipped, header)
        outside_crc = bit // 8 < 8 or 12 <= bit // 8 < 16
        assert is_same == outside_crc, f"bit {bit}"
        if outside_crc:
            assert header != original


def test_stamp_changes_offset_and_epoch_and_leaves_the_checksum_right() -> None:
    batch = a_batch()

    stamp(batch, 0, 77, 5)

    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (77, 5)
    assert header.last_offset == 79
    assert crc_is_valid(batch, header)


def test_batches_leaves_out_one_that_is_cut_short() -> None:
    one, two = a_batch(1), a_batch(2)

    found = list(batches(bytes(one + two[:-1])))

    assert [(header.position, header.record_count) for header in found] == [(0, 1)]


def test_batches_finds_all_of_several() -> None:
    view = memoryview(bytes(a_batch(1) + a_batch(2) + a_batch(3)))

    found = list(batches(view))

    assert [header.record_count for header in found] == [1, 2, 3]
    assert found[-1].end_position == len(view)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_recognised_and_refused(magic: int) -> None:
    batch = a_batch()
    batch[16] = magic

    with pytest.raises(UnsupportedMagic):
        read_header(batch)


@pytest.mark.parametrize("length", [-1, 0, 13])
def test_impossible_length_is_refused(length: int) -> None:
    batch = a_batch()
    batch[8:12] = length.to_bytes(4, "big", signed=True)

    with pytest.raises(CorruptRecords):
        list(batches(batch))


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_hold_no_sound_batch(content: bytes) -> None:
    try:
        found = list(batches(content))
    except CorruptRecords:
        return
    assert all(not crc_is_valid(content, header) for header in found)


@given(st.integers(0, SEQUENCE_MAX), st.integers(0, 10_000))
def test_sequences_wrap_to_zero(sequence: int, increment: int) -> None:
    plain = sequence + increment
    assert advance_sequence(sequence, increment) == (
        plain if plain <= SEQUENCE_MAX else plain - SEQUENCE_MAX - 1
    )


def test_crc_covers_everything_behind_it() -> None:
    assert CRC_STARTS_AT == 21


def test_log_append_time_is_every_records_time() -> None:
    batch = build_batch(
        [Record(None, b"a", timestamp=1), Record(None, b"b", timestamp=2)], log_append_time_ms=50
    )

    assert [record.timestamp for record in read_records(batch, read_header(batch))] == [50, 50]
