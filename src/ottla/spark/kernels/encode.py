"""The kernels of the sink: partitions by key, and Arrow columns into the records of a batch."""

from typing import Any

import numpy as np

from ottla.spark.kernels.compiled import compiled, copy_bytes

NO_PARTITION = -1
_SEED = 0x9747_B28C
_M = 0x5BD1_E995


def _murmur2(data: Any, start: int, length: int) -> Any:
    """The hash that Kafka's Java client takes of keys."""
    m = np.uint32(_M)
    h = np.uint32(_SEED) ^ np.uint32(length)
    at = start
    for _ in range(length // 4):
        k = (
            np.uint32(data[at])
            | np.uint32(data[at + 1]) << np.uint32(8)
            | np.uint32(data[at + 2]) << np.uint32(16)
            | np.uint32(data[at + 3]) << np.uint32(24)
        )
        k = np.uint32(k * m)
        k = np.uint32((k ^ (k >> np.uint32(24))) * m)
        h = np.uint32(h * m) ^ k
        at += 4
    rest = length & 3
    if rest == 3:
        h ^= np.uint32(data[at + 2]) << np.uint32(16)
    if rest >= 2:
        h ^= np.uint32(data[at + 1]) << np.uint32(8)
    if rest >= 1:
        h = np.uint32((h ^ np.uint32(data[at])) * m)
    h = np.uint32((h ^ (h >> np.uint32(13))) * m)
    return h ^ (h >> np.uint32(15))


murmur2 = compiled(_murmur2)


def _choose_partitions(
    rows: Any, chosen: Any, key_ends: Any, key_valid: Any, key_data: Any, count: int, sticky: int
) -> None:
    """Fill ``chosen`` for these rows where it says ``NO_PARTITION``: by key, else with the sticky one."""
    for row in rows:
        if chosen[row] != NO_PARTITION:
            continue
        if key_valid[row]:
            start = key_ends[row]
            hashed = murmur2(key_data, start, key_ends[row + 1] - start)
            chosen[row] = np.int64(hashed & np.uint32(0x7FFF_FFFF)) % count
        else:
            chosen[row] = sticky


choose_partitions = compiled(_choose_partitions)


def _group_rows(rows: Any, chosen: Any, ends: Any, ordered: Any) -> None:
    """Lay rows out partition by partition, in their order: partition p fills up to ``ends[p]``.

    ``ends`` comes with zeros, one more than there are partitions.
    """
    for row in rows:
        ends[chosen[row] + 1] += 1
    for partition in range(1, ends.shape[0]):
        ends[partition] += ends[partition - 1]
    for row in rows:
        partition = chosen[row]
        ordered[ends[partition]] = row
        ends[partition] += 1


group_rows = compiled(_group_rows)


def _varint_size(number: Any) -> Any:
    raw = np.uint64((number << 1) ^ (number >> 63))
    size = 1
    while raw >= np.uint64(0x80):
        raw >>= np.uint64(7)
        size += 1
    return size


varint_size = compiled(_varint_size)


def _write_varint(target: Any, at: int, number: Any) -> Any:
    raw = np.uint64((number << 1) ^ (number >> 63))
    while raw >= np.uint64(0x80):
        target[at] = np.uint8(raw & np.uint64(0x7F)) | np.uint8(0x80)
        raw >>= np.uint64(7)
        at += 1
    target[at] = np.uint8(raw)
    return at + 1


write_varint = compiled(_write_varint)


def _field_size(strings: Any, row: int) -> Any:
    ends, valid, _ = strings
    if not valid[row]:
        return 1
    length = np.int64(ends[row + 1] - ends[row])
    return varint_size(length) + length


field_size = compiled(_field_size)


def _write_field(target: Any, at: int, strings: Any, row: int) -> Any:
    ends, valid, data = strings
    if not valid[row]:
        return write_varint(target, at, np.int64(-1))
    start = np.int64(ends[row])
    length = np.int64(ends[row + 1]) - start
    at = write_varint(target, at, length)
    copy_bytes(target, at, data, start, length)
    return at + length


write_field = compiled(_write_field)


def _encode_records(
    rows: Any, first: int, target: Any, start: int, limit: int, columns: Any
) -> tuple[Any, Any, Any]:
    """Write rows from ``first`` on into ``target``, as many as stay below ``limit`` bytes.

    Returns the next row, the end in the target, and the largest timestamp. A row that would not fit even
    alone is left to the caller: then the next row is ``first`` itself. A column of byte strings is three
    arrays: ends, validity, bytes.
    """
    timestamps, keys, values, header_ends, header_keys, header_values = columns
    at = start
    next_row = first
    base_timestamp = timestamps[rows[first]]
    max_timestamp = base_timestamp
    while next_row < rows.shape[0]:
        row = rows[next_row]
        timestamp_delta = timestamps[row] - base_timestamp
        delta = np.int64(next_row - first)
        header_from, header_until = header_ends[row], header_ends[row + 1]
        size = (
            1
            + varint_size(timestamp_delta)
            + varint_size(delta)
            + field_size(keys, row)
            + field_size(values, row)
            + varint_size(np.int64(header_until - header_from))
        )
        for header in range(header_from, header_until):
            size += field_size(header_keys, header)
            size += field_size(header_values, header)
        if at - start + size + varint_size(size) > limit:
            break
        at = write_varint(target, at, size)
        target[at] = 0
        at = write_varint(target, at + 1, timestamp_delta)
        at = write_varint(target, at, delta)
        at = write_field(target, at, keys, row)
        at = write_field(target, at, values, row)
        at = write_varint(target, at, np.int64(header_until - header_from))
        for header in range(header_from, header_until):
            at = write_field(target, at, header_keys, header)
            at = write_field(target, at, header_values, header)
        max_timestamp = max(max_timestamp, timestamps[row])
        next_row += 1
    return next_row, at, max_timestamp


encode_records = compiled(_encode_records)
