"""Single records in a batch, for readers of keys and values; never on the broker's hot path."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ottla.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, Buffer, CorruptRecords
from ottla.records.compression import codec_of, decompress
from ottla.records.varint import LONG_BYTES_MAX, read_varint, varint_size, write_varint

RecordHeaders: TypeAlias = tuple[tuple[str, bytes | None], ...]

RECORD_SIZE_MIN = 7
"""Length, attributes, two deltas, two null lengths and a header count, a byte each."""

UNBOUNDED = 2**31 - 1

_LONGS = 1 << 64
_LONG_MAX = (1 << 63) - 1


class Record(NamedTuple):
    """One record; a builder assigns ``offset`` itself."""

    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()
    timestamp: int = NO_TIMESTAMP
    offset: int = -1


class RecordFrame(NamedTuple):
    """Where a record's parts lie in the plain records area; a length of -1 is null."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    headers_start: int
    header_count: int


def as_long(number: int) -> int:
    """A number as Java's ``long`` holds it: wraps around at 64 bits."""
    return number if -_LONG_MAX <= number <= _LONG_MAX else (number + _LONG_MAX + 1) % _LONGS - _LONG_MAX - 1


def records_area(view: Buffer, header: BatchHeader, limit: int = UNBOUNDED) -> Buffer:
    """A batch's records in plain, at most ``limit`` bytes of them."""
    if len(view) < header.end_position:
        raise CorruptRecords("the batch is cut short")
    area = memoryview(view)[header.position + HEADER_SIZE : header.end_position]
    return decompress(codec_of(header.attributes), area, limit)


def frames(area: Buffer, count: int) -> Iterator[RecordFrame]:
    """Walk ``count`` records of a plain area; raises unless they fill it exactly."""
    if not isinstance(area, bytes):
        area = bytes(area)
    position = 0
    for _ in range(count):
        frame = read_frame(area, position)
        yield frame
        position = frame.end
    if position != len(area):
        raise CorruptRecords(f"{len(area) - position} bytes are left over behind the last record")


def read_frame(area: bytes, position: int) -> RecordFrame:
    """Where the record at a position has its parts."""
    start = position
    length, position = read_varint(area, position)
    end = position + length
    if length < RECORD_SIZE_MIN - 1 or end > len(area):
        raise CorruptRecords(f"a record of {length} bytes does not fit its batch")
    position += 1
    timestamp_delta, position = read_varint(area, position, LONG_BYTES_MAX)
    offset_delta, position = read_varint(area, position)
    key_length, key_start = read_varint(area, position)
    position = _behind(key_start, key_length, end)
    value_length, value_start = read_varint(area, position)
    position = _behind(value_start, value_length, end)
    header_count, headers_start = read_varint(area, position)
    if header_count < 0:
        raise CorruptRecords(f"a record with {header_count} headers")
    frame = RecordFrame(
        start,
        end,
        timestamp_delta,
        offset_delta,
        key_start,
        key_length,
        value_start,
        value_length,
        headers_start,
        header_count,
    )
    if header_count == 0:
        if headers_start != end:
            raise CorruptRecords("a record is longer than its parts")
    else:
        _walk_headers(area, frame)
    return frame


def _behind(start: int, length: int, end: int) -> int:
    if length < -1:
        raise CorruptRecords(f"a part of {length} bytes")
    behind = start + max(length, 0)
    if behind > end:
        raise CorruptRecords("a part reaches beyond its record")
    return behind


def _walk_headers(area: bytes, frame: RecordFrame) -> list[tuple[int, int, int, int]]:
    position = frame.headers_start
    if frame.header_count > (frame.end - position) // 2:
        raise CorruptRecords(f"a record cannot hold {frame.header_count} headers")
    found = []
    for _ in range(frame.header_count):
        key_length, key_start = read_varint(area, position)
        if key_length < 0:
            raise CorruptRecords("a header without a key")
        position = _behind(key_start, key_length, frame.end)
        value_length, value_start = read_varint(area, position)
        position = _behind(value_start, value_length, frame.end)
        found.append((key_start, key_length, value_start, value_length))
    if position != frame.end:
        raise CorruptRecords("a record is longer than its parts")
    return found


def read_records(view: Buffer, header: BatchHeader, limit: int = UNBOUNDED) -> Iterator[Record]:
    """A batch's records, with their offsets and timestamps.

    Raises ``CorruptRecords`` for malformed records; ``limit`` bounds the plain bytes.
    """
    area = bytes(records_area(view, header, limit))
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    for frame in frames(area, header.record_count):
        timestamp = as_long(base_timestamp + frame.timestamp_delta) if append_time is None else append_time
        yield Record(
            _part(area, frame.key_start, frame.key_length),
            _part(area, frame.value_start, frame.value_length),
            _headers(area, frame) if frame.header_count else (),
            timestamp,
            header.base_offset + frame.offset_delta,
        )


def times_and_offsets(view: Buffer, header: BatchHeader, limit: int = UNBOUNDED) -> Iterator[tuple[int, int]]:
    """Timestamp and offset of each record; whatever else a record holds is not looked at.

    Raises ``CorruptRecords`` where records cannot be told apart; ``limit`` bounds the plain bytes.
    """
    area = records_area(view, header, limit)
    base_timestamp, base_offset = header.base_timestamp, header.base_offset
    append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    for _ in range(header.record_count):
        length, start = read_varint(area, position)
        position = start + length
        timestamp_delta, at = read_varint(area, start + 1, LONG_BYTES_MAX)
        offset_delta, at = read_varint(area, at)
        if at > position or position > len(area):
            raise CorruptRecords(f"a record of {length} bytes does not fit its batch")
        timestamp = as_long(base_timestamp + timestamp_delta) if append_time is None else append_time
        yield timestamp, base_offset + offset_delta


def _part(area: bytes, start: int, length: int) -> bytes | None:
    return None if length < 0 else area[start : start + length]


def _headers(area: bytes, frame: RecordFrame) -> RecordHeaders:
    """A record's headers; invalid UTF-8 in keys is replaced, as Java's clients do."""
    return tuple(
        (
            area[key_start : key_start + key_length].decode(errors="replace"),
            _part(area, value_start, value_length),
        )
        for key_start, key_length, value_start, value_length in _walk_headers(area, frame)
    )


def write_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: RecordHeaders = (),
) -> None:
    """Append one record to a plain records area."""
    names = [(name.encode(), content) for name, content in headers]
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(len(names))
    size += (
        _size_of(key) + _size_of(value) + sum(_size_of(name) + _size_of(content) for name, content in names)
    )
    write_varint(out, size)
    out.append(0)
    write_varint(out, timestamp_delta)
    write_varint(out, offset_delta)
    _write_part(out, key)
    _write_part(out, value)
    write_varint(out, len(names))
    for name, content in names:
        _write_part(out, name)
        _write_part(out, content)


def copy_with_offset_delta(out: bytearray, area: bytes, frame: RecordFrame, offset_delta: int) -> None:
    """Append a record's bytes unchanged but for its place in the batch."""
    _, position = read_varint(area, frame.start)
    attributes_start = position
    _, timestamp_end = read_varint(area, position + 1, LONG_BYTES_MAX)
    _, rest_start = read_varint(area, timestamp_end)
    rest = area[rest_start : frame.end]
    write_varint(out, timestamp_end - attributes_start + varint_size(offset_delta) + len(rest))
    out += area[attributes_start:timestamp_end]
    write_varint(out, offset_delta)
    out += rest


def copy_with_timestamp_delta(out: bytearray, area: bytes, frame: RecordFrame, timestamp_delta: int) -> None:
    """Append a record's bytes unchanged but for its time relative to the batch."""
    if timestamp_delta == frame.timestamp_delta:
        out += area[frame.start : frame.end]
        return
    _, attributes_start = read_varint(area, frame.start)
    _, rest_start = read_varint(area, attributes_start + 1, LONG_BYTES_MAX)
    rest = area[rest_start : frame.end]
    write_varint(out, 1 + varint_size(timestamp_delta) + len(rest))
    out.append(area[attributes_start])
    write_varint(out, timestamp_delta)
    out += rest


def _size_of(part: bytes | None) -> int:
    return 1 if part is None else varint_size(len(part)) + len(part)


def _write_part(out: bytearray, part: bytes | None) -> None:
    if part is None:
        out.append(1)
        return
    write_varint(out, len(part))
    out += part
