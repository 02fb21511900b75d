"""Spoiled batches: refused in declared ways, never believed, never large."""

from __future__ import annotations

import os
import tracemalloc
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.records.batch import CorruptRecords, batches, crc_is_valid, read_header, seal
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker, read_end_marker
from ottla.records.record import Record, read_records, records_area
from ottla.records.validate import Refused, Validated, parse_produced, validate_for_append
from ottla.records.varint import read_varint
from support.logs.crafted import crafted
from support.wire.mutations import mutated

TIMES = int(os.environ.get("OTTLA_FUZZ_N", "4000"))
LIMIT = 1 << 20
CONFIGS = (
    LogConfig(),
    LogConfig(cleanup_policy=frozenset({"compact"})),
    LogConfig(compression_type="gzip"),
    LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=10),
)


def originals() -> list[bytes]:
    headers = (("name", b"value"), ("other", None))
    records = [Record(b"key %d" % at, bytes(at), headers, 1_000 + at) for at in range(12)]
    made = [bytes(build_batch(records[:count], codec=codec)) for codec in Codec for count in (1, 2, 12)]
    marker = build_end_marker(
        producer_id=1, producer_epoch=0, is_commit=True, coordinator_epoch=0, timestamp_ms=5
    )
    many = [Record(None, bytes(20 + at % 2), (), 1_000 + at) for at in range(90)]
    made += [bytes(build_batch(many, codec=codec)) for codec in Codec]
    return [*made, bytes(marker), made[0] + made[4]]


def spoiled(random: Random, content: bytes) -> bytes:
    """Changed bytes; now and then with the checksum set right again, to get past it."""
    changed = bytearray(mutated(random, content))
    if random.random() < 0.6 and len(changed) > 61:
        size = min(12 + max(49, int.from_bytes(changed[8:12], "big")), len(changed))
        seal(changed, 0, size)
    return bytes(changed)


@pytest.mark.slow
def test_batches_with_unsound_records_raise_nothing_undeclared() -> None:
    random = Random(os.environ.get("OTTLA_FUZZ_SEED", "records"))
    for _ in range(TIMES):
        content = crafted(random)
        look_at(content)
        judge(content, random.choice(CONFIGS))


@pytest.mark.slow
def test_spoiled_batches_raise_nothing_undeclared_and_take_no_memory() -> None:
    random = Random(os.environ.get("OTTLA_FUZZ_SEED", "batches"))
    sources = originals()
    tracemalloc.start()
    try:
        for _ in range(TIMES):
            content = spoiled(random, random.choice(sources))
            look_at(content)
            judge(content, random.choice(CONFIGS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20


def look_at(content: bytes) -> None:
    try:
        found = list(batches(content))
    except CorruptRecords:
        return
    for header in found:
        crc_is_valid(content, header)
        try:
            records = list(read_records(content, header, LIMIT))
            assert len(records) == header.record_count
            assert all(-(2**63) <= record.timestamp < 2**63 for record in records)
            if header.is_control:
                read_end_marker(content, header)
        except CorruptRecords:
            continue


def judge(content: bytes, config: LogConfig) -> None:
    parsed = parse_produced(content, 9)
    if isinstance(parsed, Refused):
        return
    outcome = validate_for_append(bytearray(content), parsed, config, 5_000)
    if isinstance(outcome, Validated):
        header = read_header(outcome.view, outcome.header.position)
        assert crc_is_valid(outcome.view, header)
        assert header.record_count > 0
        assert header.last_offset_delta + 1 == header.record_count
        assert lengths_fill(bytes(records_area(outcome.view, header)), header.record_count)


def lengths_fill(area: bytes, count: int) -> bool:
    """Whether so many records, by their own lengths, end where the area does."""
    position = 0
    for _ in range(count):
        length, position = read_varint(area, position)
        position += length
        if length < 0 or position > len(area):
            return False
    return position == len(area)
