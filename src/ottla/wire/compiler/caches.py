"""Encoded forms that come again and again: topic names and lists of broker ids.

A cluster has few distinct ones, so looking them up beats building them. Every cache is bounded: in the
number of its entries and in the size of each, because what fills it comes from the network.
"""

import struct
from collections.abc import Callable, Sized
from typing import Final, Generic, TypeVar

from ottla.model.errors import MalformedRequest
from ottla.wire.primitives import INT16, INT32, STRING_BYTES_MAX, uvarint

ENTRIES_MAX: Final = 8192
STRING_CHARACTERS_MAX: Final = 128
NUMBERS_MAX: Final = 16

_Key = TypeVar("_Key", bound=Sized | None)
_Value = TypeVar("_Value")


class BoundedCache(dict[_Key, _Value], Generic[_Key, _Value]):
    """``cache[key]`` is ``make(key)``: remembered if the key is short, forgotten when there are too many."""

    def __init__(self, make: Callable[[_Key], _Value], length_max: int) -> None:
        super().__init__()
        self._make = make
        self._length_max = length_max

    def __missing__(self, key: _Key) -> _Value:
        value = self._make(key)
        if key is None or len(key) <= self._length_max:
            if len(self) >= ENTRIES_MAX:
                self.clear()
            self[key] = value
        return value


def utf8(text: str) -> bytes:
    """A string's bytes; like Kafka, with a question mark for an unpaired surrogate."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(encoded)} bytes is too long for the protocol")
    return encoded


def encode_string(text: str) -> bytes:
    """A string with the length of the versions before the flexible ones."""
    encoded = utf8(text)
    return INT16.pack(len(encoded)) + encoded


def encode_compact_string(text: str) -> bytes:
    """A string with the length of the flexible versions."""
    encoded = utf8(text)
    return uvarint(len(encoded) + 1) + encoded


def encode_nullable_string(text: str | None) -> bytes:
    """The same, and null."""
    return b"\xff\xff" if text is None else encode_string(text)


def encode_nullable_compact_string(text: str | None) -> bytes:
    """The same, and null."""
    return b"\0" if text is None else encode_compact_string(text)


def encode_int32s(numbers: tuple[int, ...]) -> bytes:
    """An array of numbers with the count of the versions before the flexible ones."""
    return INT32.pack(len(numbers)) + struct.pack(f">{len(numbers)}i", *numbers)


def encode_compact_int32s(numbers: tuple[int, ...]) -> bytes:
    """An array of numbers with the count of the flexible versions."""
    return uvarint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers)


def decode_int32s(raw: bytes) -> tuple[int, ...]:
    """The numbers of an array, its count already read."""
    if len(raw) % 4:
        raise MalformedRequest("the message ends inside an array")
    return struct.unpack(f">{len(raw) >> 2}i", raw)


STRINGS: Final = BoundedCache(encode_string, STRING_CHARACTERS_MAX)
COMPACT_STRINGS: Final = BoundedCache(encode_compact_string, STRING_CHARACTERS_MAX)
NULLABLE_STRINGS: Final = BoundedCache(encode_nullable_string, STRING_CHARACTERS_MAX)
NULLABLE_COMPACT_STRINGS: Final = BoundedCache(encode_nullable_compact_string, STRING_CHARACTERS_MAX)
INT32S: Final = BoundedCache(encode_int32s, NUMBERS_MAX)
COMPACT_INT32S: Final = BoundedCache(encode_compact_int32s, NUMBERS_MAX)
DECODED_INT32S: Final = BoundedCache(decode_int32s, NUMBERS_MAX * 4)
