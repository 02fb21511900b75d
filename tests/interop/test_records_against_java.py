"""Record batches: what Kafka's Java code writes we read equal, and what we write it reads equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import CorruptRecords, batches, crc_is_valid, read_header, stamp
from ottla.records.builder import build_batch
from ottla.records.compression import CODEC_NAMES, Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from support.processes.apache import JavaError
from support.running.examples import examples
from support.wire.records_oracle import CODECS, built_by_java, described_by_java, described_by_us

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
parts = st.none() | st.binary(max_size=60) | st.binary(min_size=1, max_size=4).map(lambda piece: piece * 4000)
header_lists = st.lists(st.tuples(names, st.none() | st.binary(max_size=8)), max_size=3)
timestamps = st.integers(0, 2**41)


@st.composite
def described_records(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records for the Java builder; offsets may have gaps, as compaction leaves them."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        key, value = draw(parts), draw(parts)
        records.append(
            {
                "offset": offset,
                "timestamp": draw(timestamps),
                "key": None if key is None else key.hex(),
                "value": None if value is None else value.hex(),
                "headers": [
                    [name, None if content is None else content.hex()] for name, content in draw(header_lists)
                ],
            }
        )
        offset += draw(st.sampled_from([1, 1, 1, 2, 900]))
    return records


@st.composite
def described_batches(draw: st.DrawFn) -> dict[str, Any]:
    """A batch in the words of the Java oracle: plain, idempotent, transactional, with horizon."""
    records = draw(described_records())
    batch: dict[str, Any] = {
        "codec": draw(st.sampled_from(CODECS)),
        "base_offset": records[0]["offset"],
        "leader_epoch": draw(st.integers(-1, INT32_MAX)),
        "records": records,
    }
    if draw(st.booleans()):
        batch["producer_id"] = draw(st.integers(0, INT64_MAX))
        batch["producer_epoch"] = draw(st.integers(0, 2**15 - 1))
        batch["base_sequence"] = draw(st.integers(0, INT32_MAX))
        batch["transactional"] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        batch["log_append_time"] = draw(timestamps)
    if draw(st.integers(0, 3)) == 0:
        batch["delete_horizon_ms"] = draw(timestamps)
    return batch


@examples(few=60, many=1_000)
@given(st.lists(described_batches(), min_size=1, max_size=3))
def test_batches_made_by_kafka_read_equal(specs: list[dict[str, Any]]) -> None:
    data = b"".join(built_by_java(**spec) for spec in specs)

    assert described_by_us(data) == described_by_java(data)


@examples(few=60, many=1_000)
@given(
    st.lists(
        st.builds(
            Record,
            key=parts,
            value=parts,
            headers=header_lists.map(tuple),
            timestamp=timestamps | st.just(-1),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(sorted(Codec)),
    st.integers(0, 2**40),
    st.integers(0, INT32_MAX),
    st.none() | st.tuples(st.integers(0, INT64_MAX), st.integers(0, 2**15 - 1), st.integers(0, INT32_MAX)),
    st.booleans(),
    st.none() | timestamps,
)
def test_batches_made_by_us_read_equal_in_kafka(
    records: list[Record],
    codec: Codec,
    base_offset: int,
    leader_epoch: int,
    producer: tuple[int, int, int] | None,
    transactional: bool,
    log_append_time_ms: int | None,
) -> None:
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    data = build_batch(
        records,
        base_offset=base_offset,
        codec=codec,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=transactional and producer is not None,
        log_append_time_ms=log_append_time_ms,
    )

    description = described_by_java(data)

    assert described_by_us(data) == description
    expected = [
        (
            None if record.key is None else record.key.hex(),
            None if record.value is None else record.value.hex(),
        )
        for record in records
    ]
    assert [(record["key"], record["value"]) for record in description[0]["records"]] == expected
    assert [record["offset"] for record in description[0]["records"]] == list(
        range(base_offset, base_offset + len(records))
    )


def test_an_uncompressed_batch_of_ours_is_kafkas_byte_for_byte() -> None:
    records = [
        Record(key=b"k", value=b"v" * 300, headers=(("h", b"1"), ("n", None)), timestamp=1_700_000_000_000),
        Record(key=None, value=None, timestamp=1_700_000_000_500),
        Record(key=b"", value=b"", timestamp=1_699_999_999_000),
    ]
    spec: list[dict[str, Any]] = [
        {
            "timestamp": 1_700_000_000_000,
            "key": b"k".hex(),
            "value": (b"v" * 300).hex(),
            "headers": [["h", "31"], ["n", None]],
        },
        {"timestamp": 1_700_000_000_500},
        {"timestamp": 1_699_999_999_000, "key": "", "value": ""},
    ]

    ours = build_batch(
        records, base_offset=7, leader_epoch=2, producer_id=9, producer_epoch=1, base_sequence=5
    )
    theirs = built_by_java(
        base_offset=7, leader_epoch=2, producer_id=9, producer_epoch=1, base_sequence=5, records=spec
    )

    assert ours == theirs


@pytest.mark.parametrize("commit", [True, False])
def test_end_markers_are_kafkas_byte_for_byte(commit: bool) -> None:
    ours = build_end_marker(
        producer_id=77,
        producer_epoch=3,
        is_commit=commit,
        coordinator_epoch=12,
        timestamp_ms=1_700_000_000_000,
        base_offset=40,
        leader_epoch=6,
    )
    theirs = built_by_java(
        marker="COMMIT" if commit else "ABORT",
        producer_id=77,
        producer_epoch=3,
        coordinator_epoch=12,
        timestamp=1_700_000_000_000,
        base_offset=40,
        leader_epoch=6,
    )

    assert ours == theirs
    assert described_by_us(theirs) == described_by_java(theirs)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_larger_than_any_block_of_its_codec_reads_equal(codec: str) -> None:
    noise = bytes((position * 7919 + position // 251) & 0xFF for position in range(300_000))
    value = noise + noise[::-1] + bytes(400_000)

    theirs = built_by_java(codec=codec, records=[{"timestamp": 5, "value": value.hex()}, {"timestamp": 6}])
    ours = build_batch(
        [Record(None, value, timestamp=5), Record(None, None, timestamp=6)], codec=_codec(codec)
    )

    assert described_by_us(theirs) == described_by_java(theirs)
    assert described_by_java(ours)[0]["records"] == described_by_java(theirs)[0]["records"]


def test_a_stamped_batch_is_still_valid_to_kafka_and_carries_its_place() -> None:
    data = bytearray(
        built_by_java(codec="lz4", records=[{"timestamp": 1, "value": "00"}, {"timestamp": 2, "value": "01"}])
    )

    stamp(memoryview(data), 0, 5_000_000_000, 17)

    [batch] = described_by_java(data)
    assert (batch["base_offset"], batch["last_offset"], batch["leader_epoch"]) == (
        5_000_000_000,
        5_000_000_001,
        17,
    )


@pytest.mark.parametrize("codec", CODECS)
def test_every_single_bit_flip_is_found_wherever_kafka_finds_it(codec: str) -> None:
    whole = bytearray(
        built_by_java(
            codec=codec, records=[{"timestamp": 1, "key": "6b", "value": "76" * 20, "headers": [["h", "00"]]}]
        )
    )
    unguarded = set(range(8)) | set(range(12, 16))  # base offset and leader epoch, which the CRC leaves out

    for position in range(len(whole)):
        for bit in range(8):
            whole[position] ^= 1 << bit
            if position not in unguarded:
                assert not _is_sound(whole), f"bit {bit} of byte {position} flipped unnoticed"
                with pytest.raises(JavaError):
                    _kafka_must_read(whole)
            whole[position] ^= 1 << bit
    assert _is_sound(whole)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_recognised_and_refused(magic: int) -> None:
    data = built_by_java(magic=magic, records=[{"timestamp": 1, "value": "00" * 60}])

    with pytest.raises(CorruptRecords):
        read_header(memoryview(data), 0)


def _codec(name: str) -> Codec:
    codec = CODEC_NAMES[name]
    assert codec is not None, f"{name} is a codec"
    return codec


def _is_sound(data: bytearray) -> bool:
    view = memoryview(data)
    try:
        headers = list(batches(view))
        return len(headers) == 1 and headers[0].size == len(data) and crc_is_valid(view, headers[0])
    except CorruptRecords:
        return False


def _kafka_must_read(data: bytearray) -> None:
    if not described_by_java(data):
        raise JavaError("no complete batch")
