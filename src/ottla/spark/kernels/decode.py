"""The kernel that turns the records of whole batches into columns, in one pass over their bytes."""

from typing import Any

import numpy as np

from ottla.records.batch import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
)
from ottla.spark.kernels.compiled import compiled, copy_bytes

# The columns of the table that describes batches to the kernel; the checksum is for the caller.
START, END, COUNT, BASE_OFFSET, BASE_TIMESTAMP, APPEND_TIME, IS_APPEND_TIME, CRC, TABLE_WIDTH = range(9)

# The counters that the kernel keeps between batches, and where it failed.
ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES, FAILED_AT = range(7)
# A timestamp that Spark cannot have, not 0, and the offset of its record.
BAD_TIMESTAMP, BAD_OFFSET, COUNTERS = 7, 8, 9

LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT = 23, 57
WANTS_KEY, WANTS_VALUE, WANTS_HEADERS, WANTS_TIMESTAMP = 1, 2, 4, 8
TIMESTAMP_MAX = (2**63 - 1) // 1000
"""Spark counts microseconds since 1970 where Kafka counts milliseconds."""

NOT_PLAIN = -1
NO_BATCH = -1
_SPECIAL_BITS = CODEC_MASK | CONTROL_BIT


def _read_number(source: Any, at: int, size: int) -> Any:
    """A big-endian number of up to eight bytes, with its sign."""
    raw = np.uint64(0)
    for n in range(size):
        raw = (raw << np.uint64(8)) | np.uint64(source[at + n])
    shift = np.int64(64 - 8 * size)
    return (np.int64(raw) << shift) >> shift


read_number = compiled(_read_number)


def _find_plain_batches(source: Any, from_offset: int, until_offset: int, table: Any) -> tuple[Any, Any]:
    """Describe the batches that hold offsets of a range, if all are sound, uncompressed and hold data.

    Returns how many they are, or ``NOT_PLAIN``, and the offset behind the last whole batch, or ``NO_BATCH``.
    """
    count, end_offset, at = 0, NO_BATCH, 0
    is_plain = True
    while source.shape[0] - at >= LOG_OVERHEAD:
        length = read_number(source, at + 8, 4)
        if length < LENGTH_MIN:
            return NOT_PLAIN, NO_BATCH
        end = at + LOG_OVERHEAD + length
        if end > source.shape[0]:
            break
        if source[at + MAGIC_AT] != MAGIC:
            return NOT_PLAIN, NO_BATCH
        attributes = read_number(source, at + ATTRIBUTES_AT, 2)
        base_offset = read_number(source, at, 8)
        end_offset = base_offset + read_number(source, at + LAST_OFFSET_DELTA_AT, 4) + 1
        records = read_number(source, at + RECORD_COUNT_AT, 4)
        if attributes & _SPECIAL_BITS:
            is_plain = False
        elif end_offset > from_offset and base_offset < until_offset and records > 0:
            table[count, START], table[count, END], table[count, COUNT] = at + HEADER_SIZE, end, records
            table[count, BASE_OFFSET] = base_offset
            table[count, BASE_TIMESTAMP] = read_number(source, at + BASE_TIMESTAMP_AT, 8)
            table[count, APPEND_TIME] = read_number(source, at + MAX_TIMESTAMP_AT, 8)
            table[count, IS_APPEND_TIME] = (attributes & LOG_APPEND_TIME_BIT) != 0
            table[count, CRC] = read_number(source, at + CRC_AT, 4) & 0xFFFF_FFFF
            count += 1
        at = end
    return (count if is_plain else NOT_PLAIN), end_offset


find_plain_batches = compiled(_find_plain_batches)


def _read_varint(source: Any, at: Any, end: Any) -> tuple[Any, Any]:
    """A zigzag number and the position behind it; a position of -1 for what is none."""
    raw = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(64):
        byte = np.uint64(source[at])
        at += 1
        raw |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return 0, -1


read_varint = compiled(_read_varint)


def _take_bytes(
    source: Any, at: int, end: int, wanted: bool, data: Any, data_at: int
) -> tuple[int, int, bool]:
    """Copy a length-prefixed field: the position behind it (-1: corrupt), the end in ``data``, is it null."""
    length, at = read_varint(source, at, end)
    if at < 0 or length > end - at:
        return -1, data_at, False
    if length < 0:
        return at, data_at, True
    if wanted:
        copy_bytes(data, data_at, source, at, length)
        data_at += length
    return at + length, data_at, False


take_bytes = compiled(_take_bytes)


def _read_record_start(source: Any, at: Any, batch_end: Any) -> tuple[Any, Any, Any, Any]:
    """A record's end, its timestamp and offset deltas, and the position behind them (-1: corrupt)."""
    length, at = read_varint(source, at, batch_end)
    if at < 0 or length < 0 or length > batch_end - at:
        return 0, 0, 0, -1
    end = at + length
    timestamp_delta, at = read_varint(source, at + 1, end)
    if at < 0:
        return 0, 0, 0, -1
    offset_delta, at = read_varint(source, at, end)
    return end, timestamp_delta, offset_delta, at


read_record_start = compiled(_read_record_start)


def _decode_headers(source: Any, at: Any, end: Any, keys: Any, values: Any, counters: Any) -> Any:
    """Append a record's headers to their columns; the position behind them (-1: corrupt)."""
    count, at = read_varint(source, at, end)
    if at < 0 or count < 0 or count > end - at:
        return -1
    key_at, value_at = counters[HEADER_KEY_BYTES], counters[HEADER_VALUE_BYTES]
    for header in range(counters[HEADERS], counters[HEADERS] + count):
        at, key_at, is_null = take_bytes(source, at, end, True, keys[2], key_at)
        if at < 0 or is_null:
            return -1
        at, value_at, is_null = take_bytes(source, at, end, True, values[2], value_at)
        if at < 0:
            return -1
        keys[0][header + 1] = key_at
        values[0][header + 1], values[1][header] = value_at, not is_null
    counters[HEADERS] += count
    counters[HEADER_KEY_BYTES], counters[HEADER_VALUE_BYTES] = key_at, value_at
    return at


decode_headers = compiled(_decode_headers)


def _decode_batch(
    source: Any, batch: Any, from_offset: int, until_offset: int, wants: int, columns: Any, counters: Any
) -> bool:
    """Fill the columns with the wanted records of one batch, a row of the table; whether it was sound."""
    offsets, timestamps, timestamp_types, keys, values, header_ends, header_keys, header_values = columns
    key_ends, key_valid, key_data = keys
    value_ends, value_valid, value_data = values
    wants_key, wants_value = (wants & WANTS_KEY) != 0, (wants & WANTS_VALUE) != 0
    wants_headers, wants_timestamp = (wants & WANTS_HEADERS) != 0, (wants & WANTS_TIMESTAMP) != 0
    row, key_at, value_at = counters[ROWS], counters[KEY_BYTES], counters[VALUE_BYTES]
    at, batch_end, is_append_time = batch[START], batch[END], batch[IS_APPEND_TIME]
    for _ in range(batch[COUNT]):
        end, timestamp_delta, offset_delta, at = read_record_start(source, at, batch_end)
        if at < 0:
            return False
        offset = batch[BASE_OFFSET] + offset_delta
        if offset < from_offset or offset >= until_offset:
            at = end
            continue
        offsets[row], timestamp_types[row] = offset, is_append_time
        timestamp = batch[APPEND_TIME] if is_append_time else batch[BASE_TIMESTAMP] + timestamp_delta
        if wants_timestamp and not -TIMESTAMP_MAX <= timestamp <= TIMESTAMP_MAX:
            counters[BAD_TIMESTAMP], counters[BAD_OFFSET] = timestamp, offset
            return False
        timestamps[row] = timestamp * 1000
        at, key_at, is_null = take_bytes(source, at, end, wants_key, key_data, key_at)
        if at < 0:
            return False
        key_ends[row + 1], key_valid[row] = key_at, not is_null
        at, value_at, is_null = take_bytes(source, at, end, wants_value, value_data, value_at)
        if at < 0:
            return False
        value_ends[row + 1], value_valid[row] = value_at, not is_null
        if wants_headers:
            at = decode_headers(source, at, end, header_keys, header_values, counters)
            if at < 0:
                return False
            header_ends[row + 1] = counters[HEADERS]
        at = end
        row += 1
    counters[ROWS], counters[KEY_BYTES], counters[VALUE_BYTES] = row, key_at, value_at
    return bool(at == batch_end)


decode_batch = compiled(_decode_batch)


def _decode_batches(
    source: Any, table: Any, from_offset: int, until_offset: int, wants: int, columns: Any, counters: Any
) -> bool:
    """Fill the columns with the records from ``from_offset`` up to ``until_offset``.

    Whether all batches were sound; if not, ``counters[FAILED_AT]`` is the row of the table, or
    ``counters[BAD_TIMESTAMP]`` what Spark cannot have. A column of byte strings is three arrays: ends (the
    start of the first is at 0), validity, bytes. Header arrays are filled only if headers are wanted.
    """
    for number in range(table.shape[0]):
        counters[FAILED_AT] = number
        if not decode_batch(source, table[number], from_offset, until_offset, wants, columns, counters):
            return False
    return True


decode_batches = compiled(_decode_batches)
