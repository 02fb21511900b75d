"""Batches as nobody writes them in good faith: sound outside, odd inside."""

from __future__ import annotations

from random import Random

from ottla.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    read_header,
    seal,
    write_header,
)
from ottla.records.builder import assemble, build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record, write_record
from ottla.records.varint import write_varint

TIMES_OF_RECORDS = (0, -1, 1_000, 2**63 - 1, -(2**63))
BYTES_OF_NUMBERS = (0x00, 0x01, 0x02, 0x0C, 0x7F, 0x80, 0x88, 0xFE, 0xFF)


def crafted(random: Random) -> bytes:
    """A batch with a right header and checksum, times at the ends of what can be, and a record or two whose
    length is right and whose inside is not."""
    count = random.choice((1, 2, 4, 5, 40))
    spoiled_records = random.choice(([], [count - 1], random.sample(range(count), random.randint(1, count))))
    area = bytearray()
    for at in range(count):
        if at in spoiled_records:
            size = random.choice((5, 6, 7, 12, 70))
            inside = bytes(random.choice(BYTES_OF_NUMBERS) for _ in range(size))
            write_varint(area, size)
            if random.random() < 0.3:  # the same number in a byte more
                area[-1] |= 0x80
                area.append(0)
            area += inside
        else:
            delta = random.choice((0, 0, 5, -5, 2**62, -(2**62)))
            name = random.choice(("", "", "name"))
            headers = ((name, b"x"),) if name else ()
            write_record(area, delta, at, random.choice((b"k", b"l")), bytes(random.randint(0, 60)), headers)
            if name and random.random() < 0.5:
                area[area.rindex(b"name")] = 0xFF
    header = read_header(build_batch([Record(b"k", b"v")] * count))._replace(
        base_timestamp=random.choice(TIMES_OF_RECORDS), max_timestamp=random.choice(TIMES_OF_RECORDS)
    )
    return bytes(assemble(header, area, random.choice((Codec.NONE, Codec.NONE, *Codec))))


def as_marker(batch: bytes, producer_id: int) -> bytes:
    """The same under the header of a transaction's end."""
    header = read_header(batch)
    attributes = header.attributes & CODEC_MASK | CONTROL_BIT | TRANSACTIONAL_BIT
    changed = bytearray(batch)
    write_header(changed, header._replace(attributes=attributes, producer_id=producer_id, producer_epoch=0))
    seal(changed, 0, len(changed))
    return bytes(changed)
