"""The header of a record batch (magic 2): read it, check it, stamp it in place.

Only the 61 bytes of the header are parsed and the checksum is verified; the records stay bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from ottla.records.checksum import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview

MAGIC = 2
MAGIC_AT = 16
CRC_AT = 17
CRC_STARTS_AT = 21
ATTRIBUTES_AT = 21
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Base offset and length: the bytes that the length does not count."""

LENGTH_MIN_ANY_MAGIC = 14
LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
SEQUENCE_MAX = 2**31 - 1

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_LENGTH = Struct(">i")
_new_header = tuple.__new__


class CorruptRecords(ValueError):
    """These bytes are not a valid batch."""


class UnsupportedMagic(CorruptRecords):
    """A message set of Kafka before 0.11 (magic 0 or 1): recognised, not read."""


class BatchHeader(NamedTuple):
    """One batch's header, and where in its buffer the batch begins."""

    position: int
    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """All bytes of the batch."""
        return self.length + LOG_OVERHEAD

    @property
    def end_position(self) -> int:
        return self.position + self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec_id(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove this batch's tombstones; ``None`` before its first pass."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)


def advance_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers go from 2^31-1 back to 0."""
    return (sequence + increment) & SEQUENCE_MAX


def read_header(view: Buffer, position: int = 0) -> BatchHeader:
    """The header at a position; the batch itself may be cut short behind it.

    Raises ``CorruptRecords`` if there is no header of magic 2.
    """
    if len(view) - position < HEADER_SIZE:
        _refuse_short(view, position)
    header: BatchHeader = _new_header(BatchHeader, (position, *_HEADER.unpack_from(view, position)))
    if header.magic != MAGIC:
        _refuse_magic(header.magic)
    if header.length < LENGTH_MIN:
        raise CorruptRecords(f"a batch of length {header.length} is shorter than its header")
    return header


def unpack_header(view: Buffer) -> BatchHeader:
    """The header at the beginning of at least 61 bytes, not validated."""
    header: BatchHeader = _new_header(BatchHeader, (0, *_HEADER.unpack_from(view)))
    return header


def _refuse_short(view: Buffer, position: int) -> None:
    rest = len(view) - position
    if rest > MAGIC_AT:
        magic = view[position + MAGIC_AT]
        if magic != MAGIC:
            _refuse_magic(magic)
    raise CorruptRecords(f"{rest} bytes hold no batch header")


def _refuse_magic(magic: int) -> None:
    if magic in (0, 1):
        raise UnsupportedMagic(f"magic {magic} is a message format before Kafka 0.11")
    raise CorruptRecords(f"magic {magic} is unknown")


def batches(view: Buffer, position: int = 0) -> Iterator[BatchHeader]:
    """The whole batches of a buffer, in order; a batch cut short at the end is left out.

    Raises ``CorruptRecords`` where a length or a magic byte cannot be true.
    """
    size = len(view)
    while size - position >= LOG_OVERHEAD:
        (length,) = _LENGTH.unpack_from(view, position + 8)
        if length < LENGTH_MIN_ANY_MAGIC:
            raise CorruptRecords(f"a batch of length {length} is shorter than any")
        if size - position < LOG_OVERHEAD + length:
            return
        header = read_header(view, position)
        yield header
        position += LOG_OVERHEAD + length


def crc_is_valid(view: Buffer, header: BatchHeader) -> bool:
    """Whether the batch's checksum (CRC-32C) is right."""
    start = header[0]
    lent = view if type(view) is memoryview else memoryview(view)
    covered = crc32c(lent[start + CRC_STARTS_AT : start + header[2] + LOG_OVERHEAD])
    return bool(covered == header[5])


def stamp(view: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write offset and leader epoch into a batch; the checksum covers neither."""
    _BASE_OFFSET.pack_into(view, position, base_offset)
    _EPOCH.pack_into(view, position + LOG_OVERHEAD, leader_epoch)


def restamp_under_crc(
    view: bytearray | memoryview, header: BatchHeader, *, attributes: int, max_timestamp: int
) -> BatchHeader:
    """Change attributes and maximum timestamp of a batch, and its checksum with them."""
    start = header.position
    Struct(">h").pack_into(view, start + ATTRIBUTES_AT, attributes)
    _BASE_OFFSET.pack_into(view, start + MAX_TIMESTAMP_AT, max_timestamp)
    seal(view, start, header.size)
    return read_header(view, start)


def seal(view: bytearray | memoryview, position: int, size: int) -> None:
    """Compute a batch's checksum and write it."""
    crc = crc32c(memoryview(view)[position + CRC_STARTS_AT : position + size])
    _CRC.pack_into(view, position + CRC_AT, crc)


def write_header(view: bytearray | memoryview, header: BatchHeader) -> None:
    """Put a header's fields at its position, checksum as given."""
    _HEADER.pack_into(view, header.position, *header[1:])
