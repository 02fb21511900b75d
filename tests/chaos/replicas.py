"""The segments of all replicas, read from the stopped brokers' disks and compared byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import crc32c

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last delta, two timestamps, the producer."""
_BEFORE_LENGTH_ENDS = 12
_CRC_BEGINS = 21


@dataclass(frozen=True, slots=True)
class Batch:
    """What two replicas must agree on."""

    base: int
    last: int
    epoch: int
    crc: int
    length: int


class Damaged(Exception):
    """A log that no broker should have left behind."""


def batches(partition: Path) -> Iterator[Batch]:
    """The batches of one replica in order: offsets dense, epochs never going back, sums right."""
    expected: int | None = None
    epoch_before = -1
    for segment in sorted(partition.glob("*.log")):
        data = segment.read_bytes()
        position = 0
        while position < len(data):
            if len(data) - position < _HEADER.size:
                raise Damaged(f"{segment} ends inside a batch")
            fields = _HEADER.unpack_from(data, position)
            base, length, epoch, crc, delta = fields[0], fields[1], fields[2], fields[4], fields[6]
            end = position + _BEFORE_LENGTH_ENDS + length
            if length <= 0 or end > len(data):
                raise Damaged(f"{segment} ends inside a batch (offset {base})")
            if crc32c.crc32c(data[position + _CRC_BEGINS : end]) != crc:
                raise Damaged(f"{segment}: the sum of the batch at offset {base} is wrong")
            if expected is not None and base != expected:
                raise Damaged(f"{segment}: offset {base} follows {expected - 1}")
            if epoch < epoch_before:
                raise Damaged(f"{segment}: epoch {epoch} follows {epoch_before} at offset {base}")
            yield Batch(base, base + delta, epoch, crc, length)
            expected, epoch_before = base + delta + 1, epoch
            position = end


def compare(topic: str, partition: int, replicas: Mapping[int, Path]) -> list[str]:
    """How the replicas of one partition differ, if they do. ``replicas``: log directories by broker."""
    logs: dict[int, list[Batch]] = {}
    problems = []
    for number, directory in replicas.items():
        try:
            logs[number] = list(batches(directory / f"{topic}-{partition}"))
        except Damaged as damaged:
            problems.append(f"broker {number}: {damaged}")
    for number, log in list(logs.items())[1:]:
        first_number, first = next(iter(logs.items()))
        start = max(first[0].base if first else 0, log[0].base if log else 0)
        ours = [batch for batch in first if batch.base >= start]
        theirs = [batch for batch in log if batch.base >= start]
        if ours != theirs:
            where = next((a for a, b in zip(ours, theirs, strict=False) if a != b), None)
            place = f"at offset {where.base}" if where else f"in length: {_end(first)} and {_end(log)}"
            problems.append(f"{topic}-{partition} of brokers {first_number} and {number} differ {place}")
    return problems


def _end(log: list[Batch]) -> int:
    return log[-1].last + 1 if log else 0
