"""Batches for produce requests, sound ones and ones with every fault that a broker looks for."""

from __future__ import annotations

import struct

from crc32c import crc32c

from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record
from support.differential.target import NOW_MS

LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 8, 16, 17, 21, 23
BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT, PRODUCER_AT, COUNT_AT, RECORDS_AT = 27, 35, 43, 57, 61


def a_batch(
    count: int = 1,
    *,
    codec: Codec = Codec.NONE,
    timestamp: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
) -> bytes:
    """A sound batch, as a producer sends it."""
    producer_id, producer_epoch, sequence = producer
    records = [Record(key, value, (("header", b"1"),), timestamp + number) for number in range(count)]
    return bytes(
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def with_bytes(batch: bytes, at: int, layout: str, *values: int, seal: bool = True) -> bytes:
    """Some field changed; the checksum made right again unless told otherwise."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, at, *values)
    if seal:
        struct.pack_into(">I", changed, CRC_AT, crc32c(bytes(changed[ATTRIBUTES_AT:])))
    return bytes(changed)


def with_attributes(batch: bytes, bits: int) -> bytes:
    """Attribute bits set."""
    (attributes,) = struct.unpack_from(">h", batch, ATTRIBUTES_AT)
    return with_bytes(batch, ATTRIBUTES_AT, ">h", attributes | bits)


def with_more_bytes(batch: bytes, more: bytes) -> bytes:
    """Bytes behind the last record, within the batch."""
    return with_bytes(batch + more, LENGTH_AT, ">i", len(batch) + len(more) - 12)


def old_message(magic: int) -> bytes:
    """A message of format 0 or 1 with a wrong checksum, which nobody comes to look at."""
    body = (
        struct.pack(">IbbqI", 0, magic, 0, NOW_MS, 0xFFFFFFFF)
        if magic
        else struct.pack(">IbbI", 0, 0, 0, 0xFFFFFFFF)
    )
    body += struct.pack(">i", 5) + b"value"
    return struct.pack(">qi", 0, len(body)) + body


FAULTS: dict[str, bytes] = {
    "no bytes": b"",
    "cut in its header": a_batch()[:40],
    "cut in its records": a_batch()[:-3],
    "length beyond the bytes": with_bytes(a_batch(), LENGTH_AT, ">i", 5_000, seal=False),
    "length 13": with_bytes(a_batch(), LENGTH_AT, ">i", 13, seal=False),
    "length 14": with_bytes(a_batch(), LENGTH_AT, ">i", 14, seal=False),
    "length 48": with_bytes(a_batch(), LENGTH_AT, ">i", 48, seal=False),
    "negative length": with_bytes(a_batch(), LENGTH_AT, ">i", -1, seal=False),
    "two batches": a_batch() + a_batch(),
    "half a batch behind the first": a_batch() + a_batch()[:20],
    "magic 0": old_message(0),
    "magic 1": old_message(1),
    "magic 3": with_bytes(a_batch(), MAGIC_AT, ">b", 3, seal=False),
    "magic -1": with_bytes(a_batch(), MAGIC_AT, ">b", -1, seal=False),
    "base offset 7": with_bytes(a_batch(), 0, ">q", 7, seal=False),
    "leader epoch 9": with_bytes(a_batch(), 12, ">i", 9, seal=False),
    "wrong checksum": with_bytes(a_batch(), CRC_AT, ">I", 12345, seal=False),
    "codec 5": with_attributes(a_batch(), 5),
    "codec 7": with_attributes(a_batch(), 7),
    "gzip that is none": with_attributes(a_batch(), 1),
    "snappy that is none": with_attributes(a_batch(), 2),
    "lz4 that is none": with_attributes(a_batch(), 3),
    "zstd that is none": with_attributes(a_batch(), 4),
    "count 0": with_bytes(a_batch(), COUNT_AT, ">i", 0),
    "count -1": with_bytes(a_batch(), COUNT_AT, ">i", -1),
    "count 5 of 2": with_bytes(a_batch(2), COUNT_AT, ">i", 5),
    "count and delta 5 of 2": with_bytes(with_bytes(a_batch(2), COUNT_AT, ">i", 5), LAST_DELTA_AT, ">i", 4),
    "count and delta 1 of 2": with_bytes(with_bytes(a_batch(2), COUNT_AT, ">i", 1), LAST_DELTA_AT, ">i", 0),
    "last delta 9 of 2": with_bytes(a_batch(2), LAST_DELTA_AT, ">i", 9),
    "last delta -1": with_bytes(a_batch(2), LAST_DELTA_AT, ">i", -1),
    "bytes behind the records": with_more_bytes(a_batch(), b"\0\0\0"),
    "control bit": with_attributes(a_batch(), 0x20),
    "control and transactional bits": with_attributes(a_batch(), 0x30),
    "log append time bit": with_attributes(a_batch(), 0x08),
    "delete horizon bit": with_attributes(a_batch(), 0x40),
    "unknown attribute bits": with_attributes(a_batch(), 0x0F80),
    "transactional bit without a producer": with_attributes(a_batch(), 0x10),
    "producer without a sequence": a_batch(producer=(77, 0, -1)),
    "producer without an epoch": a_batch(producer=(77, -1, 0)),
    "negative producer id": a_batch(producer=(-5, 0, 0)),
    "wrong maximum timestamp": with_bytes(a_batch(3), MAX_TIMESTAMP_AT, ">q", NOW_MS + 99),
    "no timestamp": a_batch(timestamp=-1),
    "timestamp 0": a_batch(timestamp=0),
    "timestamp -5": a_batch(timestamp=-5),
    "records that are noise": with_bytes(a_batch(), RECORDS_AT, ">Q", 0xFFFFFFFFFFFFFFFF),
    "a record longer than the batch": with_bytes(a_batch(), RECORDS_AT, ">B", 0x7E),
    "a record of length 0": with_bytes(a_batch(), RECORDS_AT, ">B", 0),
    "record attributes set": with_bytes(a_batch(), RECORDS_AT + 1, ">B", 0xFF),
    "offset deltas from 1": with_bytes(a_batch(), RECORDS_AT + 3, ">B", 2),
    "null key and value": a_batch(key=None, value=None),
    "1 MB": a_batch(value=bytes(1_000_000)),
    "over 1 MB": a_batch(value=bytes(1_048_588)),
}
