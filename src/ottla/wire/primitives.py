"""The protocol's smallest pieces: fixed-width numbers, varints, and what holds their bytes."""

import struct
from typing import Final, TypeAlias

from ottla.model.errors import MalformedRequest

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes that may stand in a message; views are lent, never copied."""

ZERO_UUID: Final = bytes(16)

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka refuses longer strings in every version, though compact lengths could say more."""

_UVARINT_BYTES_MAX: Final = 5
_INT32_MAX: Final = 0x7FFF_FFFF

ONE_BYTE: Final = tuple(bytes((number,)) for number in range(128))
"""The varints of one byte."""


def uvarint(value: int) -> bytes:
    """The unsigned varint of a count, a length or a tag."""
    if value < 0x80:
        return ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """The unsigned varint at a position, and the position behind it."""
    value = shift = 0
    for at in range(position, position + _UVARINT_BYTES_MAX):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _INT32_MAX:
                break
            return value, at + 1
        shift += 7
    raise MalformedRequest("a varint of more than 31 bits")


INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")


def java_length(text: str) -> int:
    """The length of a text in Java: characters outside the basic plane count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def fits_string(text: str, and_bytes: int = 0) -> bool:
    """Does this text, and so many bytes more, fit into a string of the protocol?"""
    room = STRING_BYTES_MAX - and_bytes
    return len(text) * 4 <= room or len(text.encode("utf-8", "replace")) <= room
