"""Validate what a producer sent, before it is appended to a log.

Two steps: ``parse_produced`` reads the one batch of a produce request, ``validate_for_append`` holds it
against the topic's settings. Records are looked at one by one only where a rule asks for it: compacted
topics (keys), bounded timestamps, a compression type other than the producer's, and small batches, where
it costs nothing. Any other batch is opened, and its records must fill it (``record_lengths``).
"""

from dataclasses import dataclass
from enum import IntEnum

from ottla.config.log import NEVER_MS, LogConfig
from ottla.model.errors import ErrorCode
from ottla.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_MIN_ANY_MAGIC,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    CorruptRecords,
    crc_is_valid,
    read_header,
    restamp_under_crc,
    unpack_header,
)
from ottla.records.builder import assemble
from ottla.records.compression import CODEC_NAMES, Codec, TooLarge, UnknownCodec, codec_of
from ottla.records.record import (
    RECORD_SIZE_MIN,
    RecordFrame,
    as_long,
    copy_with_offset_delta,
    frames,
    records_area,
)
from ottla.records.record_lengths import offset_deltas
from ottla.records.varint import read_varint

ZSTD_SINCE_PRODUCE_VERSION = 7
WALKED_RECORDS_MAX = 3
"""Batches up to this many records are read whole."""
WALKED_COMPRESSED_BYTES_MAX = 1024
"""Compressed batches up to this size are read whole."""
_NO_KEY = 1
"""The varint of the length -1."""
GROWTH_MAX = 64
"""A batch's plain records may exceed ``max.message.bytes`` this many times, no more."""

_NEWEST_CODEC = int(Codec.ZSTD)
_CORRUPT = int(ErrorCode.CORRUPT_MESSAGE)
_INVALID_RECORD = int(ErrorCode.INVALID_RECORD)
_INVALID_TIMESTAMP = int(ErrorCode.INVALID_TIMESTAMP)
_MESSAGE_TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)
_RECORD_LIST_TOO_LARGE = int(ErrorCode.RECORD_LIST_TOO_LARGE)


class Origin(IntEnum):
    """Who wrote a batch; coordinators may write control batches and skip sequence checks."""

    COORDINATOR = 1
    CLIENT = 2


@dataclass(frozen=True, slots=True)
class RecordError:
    """Why one record of a batch was refused."""

    batch_index: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was written, for this reason.

    ``while_appending``: the answer carries the log start offset. ``spoils_request``: every partition of
    the produce request is answered with this error.
    """

    error: int
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    while_appending: bool = False
    spoils_request: bool = False


class Validated:
    """A valid batch, ready to be stamped and written; ``view`` is the sent buffer or a rewritten one."""

    __slots__ = ("header", "log_append_time_ms", "view")

    def __init__(self, view: bytearray | memoryview, header: BatchHeader, log_append_time_ms: int) -> None:
        self.view = view
        self.header = header
        self.log_append_time_ms = log_append_time_ms


def parse_produced(records: Buffer | None, api_version: int) -> BatchHeader | Refused:
    """The single batch of a partition in a produce request (version 3 and above)."""
    if records is None:
        return Refused(_INVALID_RECORD, "no records were sent")
    size = len(records)
    if size >= HEADER_SIZE and records[MAGIC_AT] == MAGIC:
        header = unpack_header(records)
        if header[2] == size - LOG_OVERHEAD:
            is_told = api_version >= ZSTD_SINCE_PRODUCE_VERSION
            return header if is_told else _refuse_new_codec(header, api_version) or header
    if size < LOG_OVERHEAD:
        return Refused(_INVALID_RECORD)
    length = int.from_bytes(records[8:12], "big", signed=True)
    if length < LENGTH_MIN_ANY_MAGIC:
        return Refused(_CORRUPT, f"a batch length of {length} is below the minimum", spoils_request=True)
    if size <= MAGIC_AT:
        return Refused(_INVALID_RECORD)
    magic = records[MAGIC_AT]
    if magic > MAGIC:
        return Refused(_CORRUPT, f"magic {magic} is unknown", spoils_request=True)
    if magic < MAGIC or length > size - LOG_OVERHEAD:
        return Refused(_INVALID_RECORD)
    if (
        size - LOG_OVERHEAD > length
        and (refused := _refuse_second(records, LOG_OVERHEAD + length)) is not None
    ):
        return refused
    try:
        header = read_header(records)
    except CorruptRecords as error:
        return Refused(_CORRUPT, str(error))
    return _refuse_new_codec(header, api_version) or header


def _refuse_new_codec(header: BatchHeader, api_version: int) -> Refused | None:
    if api_version < ZSTD_SINCE_PRODUCE_VERSION and header.attributes & 7 == Codec.ZSTD:
        return Refused(int(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
    return None


def _refuse_second(records: Buffer, position: int) -> Refused | None:
    """Refuse a whole second batch; an incomplete one is ignored."""
    rest = len(records) - position
    if rest < LOG_OVERHEAD:
        return None
    length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
    if length < LENGTH_MIN_ANY_MAGIC:
        return Refused(_CORRUPT, f"a batch length of {length} is below the minimum", spoils_request=True)
    if rest > MAGIC_AT and records[position + MAGIC_AT] > MAGIC:
        return Refused(_CORRUPT, f"magic {records[position + MAGIC_AT]} is unknown", spoils_request=True)
    return Refused(_INVALID_RECORD) if length <= rest - LOG_OVERHEAD else None


def validate_for_append(
    view: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, origin: Origin = Origin.CLIENT
) -> Validated | Refused:
    """Validate a batch against its topic's settings; may rewrite timestamps or compression."""
    is_client = origin == Origin.CLIENT
    if is_client and header[1]:
        return _invalid(f"the base offset of a produced batch is 0, not {header.base_offset}")
    if header[2] + LOG_OVERHEAD > config.max_message_bytes:
        return Refused(_MESSAGE_TOO_LARGE)
    if not crc_is_valid(view, header):
        return Refused(_CORRUPT)
    if header[6] & 7 > _NEWEST_CODEC:
        return Refused(int(ErrorCode.UNKNOWN_SERVER_ERROR), while_appending=True)
    if is_client and (refused := _refuse_header(header)) is not None:
        return refused
    if header[13] == 1 and _is_plain_single(view, header) and not _rules_ask_for_records(header, config):
        validated = _with_timestamp_type(view, header, config, now_ms, header.max_timestamp)
    elif _must_walk(header, config):
        validated = _validate_records(view, header, config, now_ms)
    else:
        validated = _opened(view, header, config, now_ms)
    if isinstance(validated, Refused):
        return validated
    size = validated.header[2] + LOG_OVERHEAD
    if size > config.max_message_bytes:  # another codec may have changed its size
        return Refused(_MESSAGE_TOO_LARGE)
    return validated if size <= config.segment_bytes else Refused(_RECORD_LIST_TOO_LARGE)


def _invalid(message: str) -> Refused:
    return Refused(_INVALID_RECORD, message, while_appending=True)


def _refuse_header(header: BatchHeader) -> Refused | None:
    count = header[13]
    if count <= 0 or header[7] + 1 != count:
        return _invalid(f"a batch of {count} records with a last offset delta of {header.last_offset_delta}")
    if header[6] & CONTROL_BIT:
        return _invalid("clients write no control records")
    if header[10] >= 0 and header[12] < 0:
        return _invalid(f"producer {header.producer_id} sent the sequence {header.base_sequence}")
    return None


def _is_plain_single(view: Buffer, header: BatchHeader) -> bool:
    """Fast path: whether the batch is one valid, uncompressed record without headers, at the batch's time."""
    if header[6] & 7 or header[8] != header[9]:
        return False
    end = header[0] + header[2] + LOG_OVERHEAD
    try:
        length, at = read_varint(view, header[0] + HEADER_SIZE)
        if at + length != end or view[at + 1] or view[at + 2]:
            return False
        key_length, at = (-1, at + 4) if view[at + 3] == _NO_KEY else read_varint(view, at + 3)
        value_length, at = read_varint(view, at + key_length if key_length > 0 else at)
        if key_length < -1 or value_length < -1:
            return False
        if value_length > 0:
            at += value_length
        return at + 1 == end and view[at] == 0
    except (CorruptRecords, IndexError):
        return False


def _must_walk(header: BatchHeader, config: LogConfig) -> bool:
    """Whether every record is read: the batch is small, or a setting requires it."""
    return (
        header.record_count <= WALKED_RECORDS_MAX
        or (header.attributes & 7 != Codec.NONE and header.length <= WALKED_COMPRESSED_BYTES_MAX)
        or _rules_ask_for_records(header, config)
    )


def _rules_ask_for_records(header: BatchHeader, config: LogConfig) -> bool:
    return (
        config.message_timestamp_before_max_ms != NEVER_MS
        or config.message_timestamp_after_max_ms != NEVER_MS
        or "compact" in config.cleanup_policy
        or (
            config.compression_type != "producer"
            and CODEC_NAMES[config.compression_type] != header.attributes & 7
        )
    )


def _opened(view: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> Validated | Refused:
    """Check only that the records fill the batch and match its count."""
    count = header.record_count
    if not header.attributes & 7:
        try:
            offset_deltas(view, header.position + HEADER_SIZE, header.end_position, count)
        except CorruptRecords as error:
            return _invalid(str(error))
        return _with_timestamp_type(view, header, config, now_ms, header.max_timestamp)
    area = _plain_area(view, header, config)
    if isinstance(area, Refused):
        return area
    try:
        deltas = offset_deltas(area, 0, len(area), count)
    except CorruptRecords as error:
        return _invalid(str(error))
    if deltas != (0, count - 1):
        return _validate_records(view, header, config, now_ms)
    return _with_timestamp_type(view, header, config, now_ms, header.max_timestamp)


def _validate_records(
    view: Buffer, header: BatchHeader, config: LogConfig, now_ms: int
) -> Validated | Refused:
    """Read and validate every record."""
    walked = _walk(view, header, config)
    if isinstance(walked, Refused):
        return walked
    area, found = walked
    if (refused := _refuse_timestamps(found, header, config, now_ms)) is not None:
        return refused
    if config.is_compacted and not header.is_control:
        keyless = tuple(
            RecordError(at, "a compacted topic takes no record without a key")
            for at, frame in enumerate(found)
            if frame.key_length < 0
        )
        if keyless:
            return _refuse_each(keyless)
    max_timestamp = max(
        (as_long(header.base_timestamp + frame.timestamp_delta) for frame in found),
        default=header.max_timestamp,
    )
    target = CODEC_NAMES[config.compression_type]
    codec = codec_of(header.attributes)
    deltas_are_wrong = codec != Codec.NONE and any(f.offset_delta != at for at, f in enumerate(found))
    is_plain_control = header.is_control and codec == Codec.NONE  # Kafka never compresses these
    if deltas_are_wrong or (target not in (None, codec) and not is_plain_control):
        view, header = _rewrite(area, found, header, codec if target is None else target)
    return _with_timestamp_type(view, header, config, now_ms, max_timestamp)


def _plain_area(view: Buffer, header: BatchHeader, config: LogConfig) -> Buffer | Refused:
    is_compressed = header.attributes & 7 != 0
    try:
        return records_area(view, header, GROWTH_MAX * config.max_message_bytes)
    except TooLarge:
        return Refused(_MESSAGE_TOO_LARGE)
    except (UnknownCodec, CorruptRecords) as error:
        code = ErrorCode.UNKNOWN_SERVER_ERROR if is_compressed else ErrorCode.INVALID_RECORD
        return Refused(int(code), str(error), while_appending=True)


def _walk(view: Buffer, header: BatchHeader, config: LogConfig) -> tuple[bytes, list[RecordFrame]] | Refused:
    found = _plain_area(view, header, config)
    if isinstance(found, Refused):
        return found
    area = bytes(found)
    if header.record_count > len(area) // RECORD_SIZE_MIN:
        return _invalid(f"{len(area)} bytes cannot hold {header.record_count} records")
    try:
        return area, list(frames(area, header.record_count))
    except CorruptRecords as error:
        return _invalid(str(error))


def _refuse_timestamps(
    found: list[RecordFrame], header: BatchHeader, config: LogConfig, now_ms: int
) -> Refused | None:
    if config.message_timestamp_type != "CreateTime":
        return None
    before_max_ms = config.message_timestamp_before_max_ms
    earliest = now_ms - before_max_ms if before_max_ms != NEVER_MS else -(2**63)
    latest = now_ms + config.message_timestamp_after_max_ms
    wrong = []
    for at, frame in enumerate(found):
        timestamp = as_long(header.base_timestamp + frame.timestamp_delta)
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            text = f"timestamp {timestamp} of record {at} is not within [{earliest}, {latest}]"
            wrong.append(RecordError(at, text))
    return _refuse_times(tuple(wrong)) if wrong else None


def _refuse_times(errors: tuple[RecordError, ...]) -> Refused:
    message = "One or more records have been rejected due to invalid timestamp"
    return Refused(_INVALID_TIMESTAMP, message, errors, while_appending=True)


def _refuse_each(errors: tuple[RecordError, ...]) -> Refused:
    shown = ", ".join(f"record {error.batch_index}: {error.message}" for error in errors[:3])
    message = (
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return Refused(_INVALID_RECORD, message, errors, while_appending=True)


def _rewrite(
    area: bytes, found: list[RecordFrame], header: BatchHeader, codec: Codec
) -> tuple[bytearray, BatchHeader]:
    """The same records under another codec, with offset deltas 0, 1, 2 …"""
    if any(frame.offset_delta != at for at, frame in enumerate(found)):
        plain = bytearray()
        for at, frame in enumerate(found):
            copy_with_offset_delta(plain, area, frame, at)
        area = bytes(plain)
    rewritten = assemble(header, area, codec)
    return rewritten, read_header(rewritten)


def _with_timestamp_type(
    view: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, max_timestamp: int
) -> Validated | Refused:
    """Write the append time if the topic wants it; else correct a wrong maximum timestamp."""
    if not isinstance(view, bytearray) and (isinstance(view, bytes) or view.readonly):
        view = bytearray(view[header.position : header.end_position])
        header = header._replace(position=0)
    attributes = header[6]
    if config.message_timestamp_type == "CreateTime":
        if max_timestamp < NO_TIMESTAMP:
            max_timestamp = NO_TIMESTAMP
        if attributes & LOG_APPEND_TIME_BIT or max_timestamp != header[9]:
            attributes &= ~LOG_APPEND_TIME_BIT
            header = restamp_under_crc(view, header, attributes=attributes, max_timestamp=max_timestamp)
        return Validated(view, header, NO_TIMESTAMP)
    if attributes & LOG_APPEND_TIME_BIT:
        text = "the producer claims the log append time"
        return _refuse_times(tuple(RecordError(at, text) for at in range(header.record_count)))
    attributes |= LOG_APPEND_TIME_BIT
    header = restamp_under_crc(view, header, attributes=attributes, max_timestamp=now_ms)
    return Validated(view, header, now_ms)


__all__ = [
    "Origin",
    "RecordError",
    "Refused",
    "Validated",
    "parse_produced",
    "validate_for_append",
]
