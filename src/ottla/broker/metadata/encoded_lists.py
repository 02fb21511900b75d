"""Answers with one long list whose items were encoded beforehand, each by itself."""

import struct
from collections.abc import Sequence

from ottla.broker.outputs import Buffer
from ottla.wire.codec import encode_bytes
from ottla.wire.fields import Response
from ottla.wire.headers import frame_response

_COUNT = struct.Struct(">i")


def frame_with_items(
    empty: Response, version: int, correlation_id: int, items: Sequence[bytes], tail_size: int
) -> list[Buffer]:
    """The whole frame of an answer whose list is empty, with these items in it.

    ``tail_size``: how many bytes of the answer stand behind the list.
    """
    is_flexible = empty.spec.is_flexible(version)
    frame = b"".join(frame_response(empty, version, correlation_id))
    split = len(frame) - tail_size
    head = frame[4 : split - len(_count(0, is_flexible))]
    count = _count(len(items), is_flexible)
    size = len(head) + len(count) + sum(map(len, items)) + tail_size
    return [b"".join((_COUNT.pack(size), head, count, *items, frame[split:]))]


def only_item(empty: Response, with_one: Response, version: int, tail_size: int) -> bytes:
    """The bytes of the one item by which the second answer differs from the first."""
    alone = encode_bytes(with_one, version)
    head_size = len(encode_bytes(empty, version)) - tail_size
    return alone[head_size : len(alone) - tail_size]


def _count(items: int, is_flexible: bool) -> bytes:
    """The length of a list: four bytes, or one more than it as an unsigned varint."""
    if not is_flexible:
        return _COUNT.pack(items)
    left, encoded = items + 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
