"""The table of what a produce request may be refused for."""

from __future__ import annotations

import tracemalloc

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode
from ottla.records.batch import CONTROL_BIT, LOG_APPEND_TIME_BIT, BatchHeader, crc_is_valid, read_header, seal
from ottla.records.builder import assemble, build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record, read_records, write_record
from ottla.records.validate import Origin, Refused, Validated, parse_produced, validate_for_append

NOW_MS = 1_000_000


def a_batch(
    count: int = 1, *, key: bytes | None = b"k", codec: Codec = Codec.NONE, timestamp: int = 10
) -> bytearray:
    return build_batch([Record(key, b"value", timestamp=timestamp)] * count, codec=codec)


def changed(batch: bytearray, **fields: int) -> bytearray:
    """The batch with other header fields and a right checksum."""
    header = read_header(batch)
    return assemble(header._replace(**fields), batch[61:], Codec.NONE)


def judge(batch: bytearray, origin: Origin = Origin.CLIENT, **settings: object) -> Validated | Refused:
    config = LogConfig(**settings)  # type: ignore[arg-type]
    return validate_for_append(batch, read_header(batch), config, NOW_MS, origin)


def error_of(outcome: Validated | Refused | BatchHeader) -> ErrorCode:
    assert isinstance(outcome, Refused), outcome
    return ErrorCode(outcome.error)


# -- the request's one batch ---------------------------------------------------------------------------


@pytest.mark.parametrize("records", [None, b"", bytes(11), bytes(a_batch()[:-1]), bytes(a_batch()[:16])])
def test_partition_without_a_whole_batch_is_an_invalid_record(records: bytes | None) -> None:
    outcome = parse_produced(records if records != bytes(11) else bytes(8) + b"\0\0\0", 9)

    assert error_of(outcome) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_an_invalid_record(magic: int) -> None:
    batch = a_batch()
    batch[16] = magic

    assert error_of(parse_produced(batch, 9)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("at", "value"), [(16, b"\x03"), (8, (13).to_bytes(4, "big")), (16, b"\xff")])
def test_unknown_magic_or_tiny_length_spoils_the_whole_request(at: int, value: bytes) -> None:
    batch = a_batch()
    batch[at : at + len(value)] = value

    outcome = parse_produced(batch, 9)

    assert error_of(outcome) == ErrorCode.CORRUPT_MESSAGE
    assert isinstance(outcome, Refused)
    assert outcome.spoils_request
    assert outcome.message


def test_two_batches_are_an_invalid_record_and_half_a_second_one_is_dropped() -> None:
    assert error_of(parse_produced(a_batch() + a_batch(), 9)) == ErrorCode.INVALID_RECORD
    assert isinstance(parse_produced(a_batch() + a_batch()[:-1], 9), BatchHeader)


def test_zstd_is_unknown_to_old_producers() -> None:
    batch = a_batch(codec=Codec.ZSTD)

    assert error_of(parse_produced(batch, 6)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert isinstance(parse_produced(batch, 7), BatchHeader)


# -- the batch against its topic -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 20, 200])
@pytest.mark.parametrize("codec", list(Codec))
def test_sound_batch_passes_untouched(count: int, codec: Codec) -> None:
    batch = a_batch(count, codec=codec)
    before = bytes(batch)

    outcome = judge(batch)

    assert isinstance(outcome, Validated)
    assert bytes(outcome.view) == before
    assert outcome.log_append_time_ms == -1


REFUSALS = [
    ("base offset", lambda: changed(a_batch(), base_offset=5), {}, ErrorCode.INVALID_RECORD, True),
    ("size", a_batch, {"max_message_bytes": 60}, ErrorCode.MESSAGE_TOO_LARGE, False),
    ("segment", a_batch, {"segment_bytes": 60}, ErrorCode.RECORD_LIST_TOO_LARGE, False),
    (
        "no records",
        lambda: changed(a_batch(), record_count=0, last_offset_delta=-1),
        {},
        ErrorCode.INVALID_RECORD,
        True,
    ),
    ("delta", lambda: changed(a_batch(), last_offset_delta=1), {}, ErrorCode.INVALID_RECORD, True),
    (
        "count",
        lambda: changed(a_batch(), record_count=2, last_offset_delta=1),
        {},
        ErrorCode.INVALID_RECORD,
        True,
    ),
    (
        "rest",
        lambda: changed(a_batch(3), record_count=2, last_offset_delta=1),
        {},
        ErrorCode.INVALID_RECORD,
        True,
    ),
    (
        "count of many",
        lambda: changed(a_batch(8), record_count=7, last_offset_delta=6),
        {},
        ErrorCode.INVALID_RECORD,
        True,
    ),
    (
        "count far too large",
        lambda: changed(a_batch(200), record_count=2**31 - 1, last_offset_delta=2**31 - 2),
        {},
        ErrorCode.INVALID_RECORD,
        True,
    ),
    ("control", lambda: changed(a_batch(), attributes=CONTROL_BIT), {}, ErrorCode.INVALID_RECORD, True),
    ("sequence", lambda: changed(a_batch(), producer_id=4), {}, ErrorCode.INVALID_RECORD, True),
    (
        "claimed append time",
        lambda: changed(a_batch(), attributes=LOG_APPEND_TIME_BIT),
        {"message_timestamp_type": "LogAppendTime"},
        ErrorCode.INVALID_TIMESTAMP,
        True,
    ),
    ("future", a_batch, {"message_timestamp_before_max_ms": 5}, ErrorCode.INVALID_TIMESTAMP, True),
    (
        "keyless",
        lambda: a_batch(key=None),
        {"cleanup_policy": frozenset({"compact"})},
        ErrorCode.INVALID_RECORD,
        True,
    ),
]


@pytest.mark.parametrize(
    ("make", "settings", "code", "while_appending"),
    [row[1:] for row in REFUSALS],
    ids=[row[0] for row in REFUSALS],
)
def test_refusal_has_its_code_and_tells_when_it_was_found(
    make: object, settings: dict[str, object], code: ErrorCode, while_appending: bool
) -> None:
    outcome = judge(make(), **settings)  # type: ignore[operator]

    assert error_of(outcome) == code
    assert isinstance(outcome, Refused)
    assert outcome.while_appending == while_appending


def test_flipped_bit_is_corrupt() -> None:
    batch = a_batch()
    batch[-1] ^= 1

    assert error_of(judge(batch)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_the_servers_error(number: int) -> None:
    batch = a_batch()
    batch[22] = number
    seal(batch, 0, len(batch))

    assert error_of(judge(batch)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_that_do_not_decompress_are_the_servers_error() -> None:
    batch = a_batch()
    batch[22] = Codec.GZIP
    seal(batch, 0, len(batch))

    assert error_of(judge(batch)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_coordinator_may_write_control_batches() -> None:
    assert isinstance(judge(changed(a_batch(), attributes=CONTROL_BIT), Origin.COORDINATOR), Validated)


def test_each_keyless_record_is_told_by_its_index() -> None:
    records = [Record(b"k", b"v"), Record(None, b"v"), Record(b"k", b"v"), Record(None, b"v")]

    outcome = judge(build_batch(records), cleanup_policy=frozenset({"compact"}))

    assert isinstance(outcome, Refused)
    assert [error.batch_index for error in outcome.record_errors] == [1, 3]
    assert "2 record errors in total" in (outcome.message or "")


def test_each_record_out_of_time_is_told_by_its_index() -> None:
    records = [Record(b"k", b"v", timestamp=time) for time in (NOW_MS, NOW_MS + 11, -1, NOW_MS - 11)]
    settings = {"message_timestamp_before_max_ms": 10, "message_timestamp_after_max_ms": 10}

    outcome = judge(build_batch(records), **settings)

    assert isinstance(outcome, Refused)
    assert [error.batch_index for error in outcome.record_errors] == [1, 3]


def test_append_time_is_stamped_into_the_batch_and_its_checksum() -> None:
    outcome = judge(a_batch(5), message_timestamp_type="LogAppendTime")

    assert isinstance(outcome, Validated)
    assert outcome.log_append_time_ms == NOW_MS
    assert outcome.header.max_timestamp == NOW_MS
    assert outcome.header.is_log_append_time
    assert crc_is_valid(outcome.view, outcome.header)


def test_append_time_bit_is_cleared_on_a_create_time_topic() -> None:
    outcome = judge(changed(a_batch(50), attributes=LOG_APPEND_TIME_BIT))

    assert isinstance(outcome, Validated)
    assert not outcome.header.is_log_append_time
    assert crc_is_valid(outcome.view, outcome.header)


def test_wrong_maximum_timestamp_of_a_small_batch_is_corrected() -> None:
    outcome = judge(changed(a_batch(2, timestamp=10), max_timestamp=999))

    assert isinstance(outcome, Validated)
    assert outcome.header.max_timestamp == 10
    assert crc_is_valid(outcome.view, outcome.header)


@pytest.mark.parametrize(("base", "delta", "second"), [(2**63 - 1, 5, 4 - 2**63), (-(2**63), -1, 2**63 - 1)])
def test_time_beyond_the_last_number_goes_on_at_the_other_end_as_in_java(
    base: int, delta: int, second: int
) -> None:
    area = bytearray()
    write_record(area, 0, 0, b"k", b"v")
    write_record(area, delta, 1, b"k", b"v")
    header = read_header(a_batch(2))._replace(base_timestamp=base)

    outcome = judge(assemble(header, area, Codec.NONE))

    assert isinstance(outcome, Validated)
    assert [record.timestamp for record in read_records(outcome.view, outcome.header)] == [base, second]
    assert outcome.header.max_timestamp == 2**63 - 1


@pytest.mark.parametrize("topic_type", ["gzip", "lz4", "zstd", "snappy", "uncompressed"])
@pytest.mark.parametrize("sent", list(Codec))
def test_topics_compression_type_is_imposed(topic_type: str, sent: Codec) -> None:
    batch = a_batch(30, codec=sent)
    records = list(read_records(batch, read_header(batch)))

    outcome = judge(batch, compression_type=topic_type)

    assert isinstance(outcome, Validated)
    wanted = Codec.NONE if topic_type == "uncompressed" else Codec[topic_type.upper()]
    assert outcome.header.codec_id == wanted
    assert crc_is_valid(outcome.view, outcome.header)
    assert list(read_records(outcome.view, outcome.header)) == records


def test_wrong_offset_deltas_in_a_compressed_batch_are_put_right() -> None:
    plain = build_batch([Record(b"a", b"1", headers=(("h", b"x"),)), Record(b"b", b"2")])
    area = bytearray(plain[61:])
    area[3] = 14
    batch = assemble(read_header(plain), area, Codec.GZIP)

    outcome = judge(batch)

    assert isinstance(outcome, Validated)
    found = list(read_records(outcome.view, outcome.header))
    assert [record.offset for record in found] == [0, 1]
    assert found[0].headers == (("h", b"x"),)


def test_bomb_is_refused_where_records_must_be_read() -> None:
    bomb = build_batch([Record(b"k", bytes(5_000_000))], codec=Codec.GZIP)

    outcome = judge(bomb, cleanup_policy=frozenset({"compact"}), max_message_bytes=50_000)

    assert error_of(outcome) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_bomb_is_refused_on_any_topic_before_it_takes_memory(codec: Codec) -> None:
    bomb = build_batch([Record(b"k", bytes(2_000_000)) for _ in range(9)], codec=codec)
    tracemalloc.start()

    outcome = judge(bomb, max_message_bytes=len(bomb) + 1)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if 64 * len(bomb) < 18_000_000:
        assert error_of(outcome) == ErrorCode.MESSAGE_TOO_LARGE
        assert peak < 3 * 64 * len(bomb) + 1_000_000
    else:
        assert isinstance(outcome, Validated), "snappy cannot grow that much"


def test_readonly_buffer_is_copied_before_it_is_stamped() -> None:
    batch = bytes(a_batch(50))

    outcome = validate_for_append(batch, read_header(batch), LogConfig(), NOW_MS)

    assert isinstance(outcome, Validated)
    assert not memoryview(outcome.view).readonly


def test_end_markers_are_not_compressed() -> None:
    marker = build_end_marker(
        producer_id=1, producer_epoch=0, is_commit=True, coordinator_epoch=0, timestamp_ms=10
    )

    outcome = judge(marker, Origin.COORDINATOR, compression_type="gzip")

    assert isinstance(outcome, Validated)
    assert bytes(outcome.view) == bytes(marker)


# -- sizes, after the topic's codec --------------------------------------------------------------------


def a_well_packed_batch() -> bytearray:
    return build_batch([Record(b"k", bytes(5_000), timestamp=1)], codec=Codec.GZIP)


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("max_message_bytes", ErrorCode.MESSAGE_TOO_LARGE),
        ("segment_bytes", ErrorCode.RECORD_LIST_TOO_LARGE),
    ],
)
def test_batch_that_the_topics_codec_makes_too_large_is_refused(limit: str, code: ErrorCode) -> None:
    assert len(a_well_packed_batch()) < 2_000

    outcome = judge(a_well_packed_batch(), compression_type="uncompressed", **{limit: 2_000})

    assert error_of(outcome) == code


def test_batch_fits_into_a_segment_if_it_does_under_the_topics_codec() -> None:
    batch = build_batch([Record(b"k", bytes(5_000), timestamp=1)])

    assert isinstance(judge(batch, compression_type="gzip", segment_bytes=2_000), Validated)


def test_records_that_are_wrong_are_told_before_a_batch_that_is_too_large_for_a_segment() -> None:
    outcome = judge(a_batch(key=None), cleanup_policy=frozenset({"compact"}), segment_bytes=60)

    assert error_of(outcome) == ErrorCode.INVALID_RECORD
