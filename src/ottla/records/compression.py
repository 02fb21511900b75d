"""Kafka's codecs over a batch's records area, with a bound on what a few bytes may grow to."""

from enum import IntEnum
from struct import Struct
from typing import Any

from ottla.records.batch import Buffer, CorruptRecords


class Codec(IntEnum):
    """Compression of a batch, by the number in its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnknownCodec(CorruptRecords):
    """The attributes name codec 5, 6 or 7, which do not exist."""


class TooLarge(CorruptRecords):
    """The records would grow beyond the limit that the caller set."""


CODEC_NAMES: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""Values of ``compression.type``; ``producer`` keeps what came."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024
_INT = Struct(">i")

_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Frame of independent 64 KiB blocks without checksums: the only kind every Kafka client reads."""
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x8000_0000
_LZ4_LENGTH = Struct("<I")

_GUESS_MIN = 4096
_SNAPPY_GROWTH_MAX = 22
"""A snappy copy element of 3 bytes yields at most 64."""


def codec_of(attributes: int) -> Codec:
    """The codec that a batch's attributes name."""
    number = attributes & 7
    if number > Codec.ZSTD:
        raise UnknownCodec(f"there is no codec {number}")
    return Codec(number)


def compress(codec: Codec, data: Buffer) -> bytes:
    """The records area as the codec writes it."""
    if codec == Codec.NONE:
        return bytes(data)
    import cramjam

    if codec == Codec.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data))
    if codec == Codec.SNAPPY:
        return _compress_xerial(cramjam, data)
    return _compress_lz4_frame(cramjam, data)


def decompress(codec: Codec, data: Buffer, limit: int) -> Buffer:
    """The records area in plain, never more than ``limit`` bytes of it.

    Raises ``TooLarge`` beyond the limit and ``CorruptRecords`` for what is no such stream.
    """
    if codec == Codec.NONE:
        if len(data) > limit:
            raise TooLarge(f"{len(data)} bytes of records exceed the limit of {limit}")
        return data
    import cramjam

    if codec == Codec.SNAPPY:
        return _decompress_snappy(cramjam, data, limit)
    into = {Codec.GZIP: cramjam.gzip, Codec.LZ4: cramjam.lz4, Codec.ZSTD: cramjam.zstd}[codec].decompress_into
    return _decompress_growing(into, cramjam.DecompressionError, data, limit)


def _decompress_growing(into: Any, failure: type[Exception], data: Buffer, limit: int) -> Buffer:
    """Try buffers of growing size: the streams do not say how long they will be."""
    room = min(limit, max(_GUESS_MIN, 4 * len(data)))
    while True:
        output = bytearray(room)
        try:
            written = into(data, output)
        except failure as error:
            if "write whole buffer" not in str(error):
                raise CorruptRecords(f"records do not decompress: {error}") from None
            if room >= limit:
                raise TooLarge(f"{len(data)} bytes of records grow beyond the limit of {limit}") from None
            room = min(limit, room * 4)
            continue
        return memoryview(output)[:written]


def _compress_xerial(cramjam: Any, data: Buffer) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_INT.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(cramjam: Any, data: Buffer, limit: int) -> Buffer:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(cramjam, view, limit)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if len(view) - position < 4:
            raise CorruptRecords("a snappy frame ends inside a block's length")
        (size,) = _INT.unpack_from(view, position)
        position += 4
        if not 0 <= size <= len(view) - position:
            raise CorruptRecords(f"a snappy block of {size} bytes does not fit its frame")
        output += _snappy_block(cramjam, view[position : position + size], limit - len(output))
        position += size
    return output


def _snappy_block(cramjam: Any, block: memoryview, limit: int) -> Buffer:
    try:
        length = cramjam.snappy.decompress_raw_len(block)
        if length > limit:
            raise TooLarge(f"a snappy block of {length} bytes exceeds the limit")
        if length > _SNAPPY_GROWTH_MAX * len(block) + 64:
            raise CorruptRecords(f"a snappy block of {len(block)} bytes cannot hold {length}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptRecords(f"records do not decompress: {error}") from None


def _compress_lz4_frame(cramjam: Any, data: Buffer) -> bytes:
    parts = [_LZ4_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK):
        plain = view[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (_LZ4_LENGTH.pack(len(block)), block)
        else:
            parts += (_LZ4_LENGTH.pack(len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(_LZ4_LENGTH.pack(0))
    return b"".join(parts)
