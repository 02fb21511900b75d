"""Records inside a batch: all kinds there and back; nothing unsound is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import HEADER_SIZE, CorruptRecords, read_header, seal
from ottla.records.builder import assemble, build_batch
from ottla.records.compression import Codec, TooLarge, UnknownCodec, compress, decompress
from ottla.records.control import EndMarker, build_end_marker, read_end_marker
from ottla.records.record import Record, frames, read_records, times_and_offsets
from ottla.records.varint import LONG_BYTES_MAX, read_varint, varint_size, write_varint

HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=200),
        headers=HEADERS,
        timestamp=st.integers(-1, 2**50),
    ),
    min_size=1,
    max_size=20,
)


@given(RECORDS, st.sampled_from(Codec), st.integers(0, 2**60))
def test_records_built_are_the_records_read(records: list[Record], codec: Codec, base_offset: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=base_offset)

    found = list(read_records(batch, read_header(batch), 1 << 20))

    assert found == [record._replace(offset=base_offset + at) for at, record in enumerate(records)]


@given(RECORDS, st.sampled_from(Codec), st.none() | st.integers(0, 2**40))
def test_times_and_offsets_are_those_of_the_records(
    records: list[Record], codec: Codec, append_time: int | None
) -> None:
    batch = build_batch(records, codec=codec, base_offset=7, log_append_time_ms=append_time)
    header = read_header(batch)

    found = list(times_and_offsets(batch, header))

    assert found == [(record.timestamp, record.offset) for record in read_records(batch, header)]


def test_header_key_that_is_no_text_is_read_with_signs_of_replacement_as_in_java() -> None:
    batch = build_batch([Record(b"k", b"v", (("name", b"x"), ("other", None)))])
    batch[batch.index(b"name")] = 0xFF

    [record] = read_records(batch, read_header(batch))

    assert record.headers == (("\ufffdame", b"x"), ("other", None))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varint_is_read_as_written(value: int) -> None:
    out = bytearray()
    write_varint(out, value)

    assert read_varint(bytes(out), 0, LONG_BYTES_MAX) == (value, len(out))
    assert varint_size(value) == len(out)


def test_endless_varint_is_refused() -> None:
    with pytest.raises(CorruptRecords):
        read_varint(b"\xff" * 20, 0)


def with_area(area: bytes, count: int) -> bytearray:
    header = read_header(build_batch([Record(None, b"x")]))
    return assemble(header._replace(record_count=count), area, Codec.NONE)


@pytest.mark.parametrize(
    "area",
    [
        b"",
        b"\x02",
        b"\x0c\x00\x00\x00\x01\x01",
        b"\x0c\x00\x00\x00\x01\x01\x00\x00",
        b"\x0c\x00\x00\x00\x01\x01\x02",
        b"\x0c\x00\x00\x00\x03\x01\x00",
        b"\xff\xff\xff\xff\xff\xff\xff",
        b"\x0c\x00\x00\x00\x01\x01\x01",
    ],
    ids=["none", "cut", "short", "rest", "no header there", "key of -2", "endless length", "header count -1"],
)
def test_unsound_records_are_refused(area: bytes) -> None:
    batch = with_area(area, 1)

    with pytest.raises(CorruptRecords):
        list(read_records(batch, read_header(batch)))


def test_count_beyond_the_records_is_refused() -> None:
    area = bytes(build_batch([Record(None, b"x")])[HEADER_SIZE:])

    with pytest.raises(CorruptRecords):
        list(frames(area, 2))


def test_sound_record_is_walked() -> None:
    assert len(list(frames(b"\x0c\x00\x00\x00\x01\x01\x00", 1))) == 1


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_bomb_is_not_blown_up(codec: Codec) -> None:
    bomb = compress(codec, bytes(10_000_000))

    with pytest.raises(TooLarge):
        decompress(codec, bomb, 1_000_000)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@given(content=st.binary(max_size=300))
def test_random_bytes_under_a_codec_raise_nothing_undeclared(codec: Codec, content: bytes) -> None:
    try:
        assert len(decompress(codec, content, 10_000)) <= 10_000
    except CorruptRecords:
        return


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 64 * 1024, 200_000])
def test_compressed_and_plain_are_each_others_inverse_at_block_borders(codec: Codec, size: int) -> None:
    content = bytes(at * at % 251 for at in range(size))

    assert bytes(decompress(codec, compress(codec, content), size or 1)) == content


def test_snappy_without_the_java_frame_is_read_too() -> None:
    import cramjam

    raw = bytes(cramjam.snappy.compress_raw(b"plain " * 100))

    assert bytes(decompress(Codec.SNAPPY, raw, 10_000)) == b"plain " * 100


def test_lz4_frames_have_independent_blocks_that_kafka_can_read() -> None:
    frame = compress(Codec.LZ4, b"plain " * 100)

    assert frame[:4] == bytes.fromhex("04224d18")
    assert frame[4] & 0x20, "block independence"


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_refused(number: int) -> None:
    batch = build_batch([Record(None, b"x")])
    batch[22] = number
    seal(batch, 0, len(batch))

    with pytest.raises(UnknownCodec):
        list(read_records(batch, read_header(batch)))


@pytest.mark.parametrize("is_commit", [True, False])
def test_end_marker_is_read_as_built(is_commit: bool) -> None:
    batch = build_end_marker(
        producer_id=7, producer_epoch=3, is_commit=is_commit, coordinator_epoch=11, timestamp_ms=99
    )

    header = read_header(batch)

    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert read_end_marker(batch, header) == EndMarker(is_commit, 11)
    assert len(batch) == 78
