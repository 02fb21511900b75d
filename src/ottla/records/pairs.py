"""Keys and values of records, for readers of millions who need nothing else."""

from typing import TypeAlias

from ottla.records.batch import BatchHeader, Buffer, CorruptRecords
from ottla.records.record import read_frame, records_area

Pair: TypeAlias = tuple[bytes | None, bytes | None]

_MORE = 0x80
"""The bit of a varint's byte that means that another follows."""

_TWO_BYTES_MAX = (1 << 14) - 1
"""The largest number that two bytes of a varint hold."""

_DELTAS_BYTES_MAX = 6
"""So short together, neither of the two deltas before the key is longer than it may be."""


def read_pairs(view: Buffer, header: BatchHeader) -> list[Pair]:
    """Key and value of each record; raises ``CorruptRecords`` for malformed records."""
    area = bytes(records_area(view, header))
    pairs: list[Pair] = []
    position = 0
    for _ in range(header.record_count):
        position = _read_short(area, position, pairs) or _read_any(area, position, pairs)
    if position != len(area):
        raise CorruptRecords(f"{len(area) - position} bytes are left over behind the last record")
    return pairs


def _read_short(area: bytes, position: int, pairs: list[Pair]) -> int:
    """The position behind a plain record: short key and value, no headers. Zero if it is not one of these."""
    try:
        length = area[position]
        position += 1
        if length >= _MORE:
            length += (area[position] - 1) << 7
            position += 1
        end = position + (length >> 1)
        deltas_start = position + 1
        position = deltas_start
        while area[position] >= _MORE:
            position += 1
        position += 1
        while area[position] >= _MORE:
            position += 1
        position += 1
        key_length = area[position]
        if position - deltas_start > _DELTAS_BYTES_MAX:
            return 0
        position += 1
        if key_length >= _MORE:
            key_length += (area[position] - 1) << 7
            position += 1
        value_start = position + (key_length >> 1)
        key = area[position:value_start]
        value_length = area[value_start]
        value_start += 1
        if (value_length | key_length | length) & 1 or value_length >= _MORE:
            return 0
        if length > _TWO_BYTES_MAX or key_length > _TWO_BYTES_MAX:
            return 0
        value_end = value_start + (value_length >> 1)
        if area[value_end] or value_end + 1 != end:
            return 0
    except IndexError:
        return 0
    pairs.append((key, area[value_start:value_end]))
    return end


def _read_any(area: bytes, position: int, pairs: list[Pair]) -> int:
    frame = read_frame(area, position)
    key = None if frame.key_length < 0 else area[frame.key_start : frame.key_start + frame.key_length]
    value_end = frame.value_start + frame.value_length
    pairs.append((key, None if frame.value_length < 0 else area[frame.value_start : value_end]))
    return frame.end
