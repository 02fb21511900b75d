"""Batches whose records do not keep what the header promises: we refuse whatever Kafka refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from ottla.records.batch import HEADER_SIZE, BatchHeader, read_header, seal
from ottla.records.builder import assemble, build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record, frames, records_area, write_record
from support.logs.twins import TwinLogs

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

Spoil = Callable[[bytearray, BatchHeader], tuple[bytearray, BatchHeader]]


def counted_otherwise(change: int) -> Spoil:
    def spoil(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
        count = header.record_count + change
        return area, header._replace(record_count=count, last_offset_delta=count - 1)

    return spoil


def cut_short(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    return area[:-3], header


def followed_by_more(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    return area + b"more", header


def of_no_records(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    return bytearray(b"\xff" * len(area)), header


def with_a_wrong_length(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    middle = list(frames(area, header.record_count))[header.record_count // 2]
    area[middle.start] ^= 0x04
    return area, header


def with_a_wrong_record(at: int) -> Spoil:
    def spoil(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
        found = list(frames(area, header.record_count))[at]
        area[found.end - 1] = 0x04  # two headers, and no byte for them
        return area, header

    return spoil


def untouched(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    return area, header


def numbered_backwards(area: bytearray, header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    turned = bytearray()
    for at, frame in enumerate(frames(area, header.record_count)):
        key = bytes(area[frame.key_start : frame.key_start + frame.key_length])
        value = bytes(area[frame.value_start : frame.value_start + frame.value_length])
        write_record(turned, frame.timestamp_delta, header.record_count - 1 - at, key, value)
    return turned, header


SPOILS: dict[str, Spoil] = {
    "untouched": untouched,
    "one record fewer than counted": counted_otherwise(1),
    "one record more than counted": counted_otherwise(-1),
    "cut short": cut_short,
    "followed by more": followed_by_more,
    "of no records": of_no_records,
    "with a wrong length": with_a_wrong_length,
    "with a wrong first record": with_a_wrong_record(0),
    "with a wrong last record": with_a_wrong_record(-1),
    "numbered backwards": numbered_backwards,
}


def a_spoiled_batch(spoil: Spoil, count: int, *, regular: bool, codec: Codec) -> bytes:
    records = [
        Record(b"key-%04d" % at, bytes(90 if regular else 20 + at * 37 % 200), timestamp=1_000)
        for at in range(count)
    ]
    batch = build_batch(records)
    header = read_header(batch)
    area, header = spoil(bytearray(records_area(batch, header)), header)
    return bytes(assemble(header, area, codec))


REFUSALS = {int(ErrorCode.INVALID_RECORD), int(ErrorCode.UNKNOWN_SERVER_ERROR)}
"""Kafka's reader says invalid record where it notices, else it breaks down; refused is refused."""


def verdicts(twins: TwinLogs, batch: bytes) -> tuple[bool, bool]:
    """Whether we and Kafka refuse a batch."""
    ours = twins.ours.append(batch, 0, twins.now_ms)
    theirs = twins.theirs.call("append", now_ms=twins.now_ms, records=batch.hex(), epoch=0)
    for said in (ours, theirs):
        assert said.get("error", 87) in REFUSALS, said
    return "error" in ours, "error" in theirs


@pytest.mark.parametrize("codec", list(Codec))
def test_records_that_do_not_fill_their_batch_are_refused_wherever_kafka_refuses_them(
    tmp_path: Path, codec: Codec
) -> None:
    """In compressed batches Kafka believes a wrong length, which then breaks its consumers. It breaks
    down over offset deltas in disorder, which we put right."""
    twins = TwinLogs(tmp_path)
    said: dict[str, set[tuple[bool, bool]]] = {}

    for name, spoil in SPOILS.items():
        for count in (2, 7, 40, 300):
            for regular in (True, False):
                batch = a_spoiled_batch(spoil, count, regular=regular, codec=codec)
                said.setdefault(name, set()).add(verdicts(twins, batch))

    assert said.pop("untouched") == {(False, False)}
    assert said.pop("numbered backwards") == {(False, codec != Codec.NONE)}
    assert said.pop("with a wrong length") == {(True, codec == Codec.NONE)}
    assert said == {name: {(True, True)} for name in said}


@pytest.mark.parametrize("count", [2, 300])
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_records_that_do_not_decompress_are_refused_as_kafka_refuses_them(
    tmp_path: Path, codec: Codec, count: int
) -> None:
    twins = TwinLogs(tmp_path)
    batch = build_batch([Record(b"k", b"value %d" % at) for at in range(count)], codec=codec)

    for start, stop in ((0, 8), (0, len(batch)), (len(batch) // 2 - 30, len(batch))):
        spoiled = bytearray(batch)
        length = len(spoiled[HEADER_SIZE + start : HEADER_SIZE + stop])
        spoiled[HEADER_SIZE + start : HEADER_SIZE + stop] = b"\xee" * length
        seal(spoiled, 0, len(spoiled))
        assert verdicts(twins, bytes(spoiled)) == (True, True)
