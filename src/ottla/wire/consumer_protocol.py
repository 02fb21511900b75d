"""What the members of a consumer group tell one another through JoinGroup and SyncGroup.

Both blobs begin with their version as two bytes. A version newer than ours is read as the newest that we
know: later versions only add fields at the end.
"""

import struct
from typing import Annotated, ClassVar, Final, TypeVar

from ottla.model.errors import MalformedRequest
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.fields import Message, Spec, Struct, i32, since
from ottla.wire.primitives import Buffer

PROTOCOL_TYPE: Final = "consumer"
VERSION_MAX: Final = 3

_VERSION: Final = struct.Struct(">h")
_M = TypeVar("_M", bound=Message)


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic: str = ""
    partitions: tuple[i32, ...] = ()


class ConsumerProtocolSubscription(Message):
    """What a member wants to read, and what it owns."""

    spec: ClassVar[Spec] = Spec(versions=(0, VERSION_MAX), flexible=None)

    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned_partitions: Annotated[list[TopicPartitions], since(1)] = []
    generation_id: Annotated[i32, since(2)] = -1
    rack_id: Annotated[str | None, since(3)] = None


class ConsumerProtocolAssignment(Message):
    """What a member is to read."""

    spec: ClassVar[Spec] = Spec(versions=(0, VERSION_MAX), flexible=None)

    assigned_partitions: list[TopicPartitions] = []
    user_data: bytes | None = None


def encode_blob(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """The version, then the fields."""
    return _VERSION.pack(version) + encode_bytes(message, version)


def decode_subscription(blob: Buffer) -> ConsumerProtocolSubscription:
    """A member's metadata in JoinGroup."""
    return _decode_blob(ConsumerProtocolSubscription, blob)


def decode_subscribed_topics(blob: Buffer) -> tuple[str, ...]:
    """The topics in a member's metadata. The coordinator reads nothing behind them: some clients leave
    out fields that the version they name should have."""
    if len(blob) < _VERSION.size:
        raise MalformedRequest("a consumer protocol blob without its version")
    return decode(ConsumerProtocolSubscription, 0, blob, _VERSION.size).topics


def decode_assignment(blob: Buffer) -> ConsumerProtocolAssignment:
    """A member's assignment in SyncGroup. No bytes at all are an empty assignment."""
    if not len(blob):
        return ConsumerProtocolAssignment()
    return _decode_blob(ConsumerProtocolAssignment, blob)


def _decode_blob(cls: type[_M], blob: Buffer) -> _M:
    if len(blob) < _VERSION.size:
        raise MalformedRequest("a consumer protocol blob without its version")
    version: int = _VERSION.unpack_from(blob, 0)[0]
    if version < 0:
        raise MalformedRequest(f"consumer protocol version {version}")
    return decode(cls, min(version, VERSION_MAX), blob, _VERSION.size)
