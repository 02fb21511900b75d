"""Large Metadata answers without encoding every topic again: each topic's bytes are kept until it changes."""

import struct
from collections.abc import Callable, Iterable

from ottla.broker.metadata_image import TopicInfo
from ottla.broker.outputs import Buffer
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import frame_response

FIRST_FLEXIBLE = 9
_COUNT = struct.Struct(">i")


def frame_with_topics(
    answer: MetadataResponse,
    version: int,
    correlation_id: int,
    listener: str,
    topics: Iterable[TopicInfo],
    row_of: Callable[[TopicInfo], MetadataResponseTopic],
) -> list[Buffer]:
    """The whole frame of ``answer``, which holds no topics yet, with these put in."""
    frame = b"".join(frame_response(answer, version, correlation_id))
    blobs = [_blob(topic, version, listener, row_of) for topic in topics]
    count = _count(len(blobs), version)
    split = len(frame) - _tail_size(version)
    head = frame[4 : split - len(_count(0, version))]
    size = len(head) + len(count) + sum(map(len, blobs)) + _tail_size(version)
    return [b"".join((_COUNT.pack(size), head, count, *blobs, frame[split:]))]


def _blob(
    topic: TopicInfo, version: int, listener: str, row_of: Callable[[TopicInfo], MetadataResponseTopic]
) -> bytes:
    blob = topic.encoded.get((listener, version))
    if blob is None:
        alone = encode_bytes(MetadataResponse(topics=[row_of(topic)]), version)
        blob = alone[_head_size(version) + len(_count(1, version)) : len(alone) - _tail_size(version)]
        topic.encoded[listener, version] = blob
    return blob


def _head_size(version: int) -> int:
    """How many bytes stand before the topics where everything else is empty."""
    empty = encode_bytes(MetadataResponse(), version)
    return len(empty) - _tail_size(version) - len(_count(0, version))


def _tail_size(version: int) -> int:
    """What follows the topics: the cluster's operations in versions 8 to 10, tags in flexible ones."""
    return (4 if 8 <= version <= 10 else 0) + (1 if version >= FIRST_FLEXIBLE else 0)


def _count(topics: int, version: int) -> bytes:
    """The length of the list of topics: four bytes, or one more than it as an unsigned varint."""
    if version < FIRST_FLEXIBLE:
        return _COUNT.pack(topics)
    left, encoded = topics + 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
