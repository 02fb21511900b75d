"""The keys and values that coordinators store in ``__consumer_offsets`` and ``__transaction_state``.

Each begins with its version as two bytes. The version of a key is also its kind: offsets are 0 and 1,
groups are 2, newer kinds are not ours. A value of no bytes at all (null) is a tombstone.
"""

import struct
from typing import Annotated, ClassVar, Final, TypeVar

from ottla.model.errors import MalformedRequest
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.fields import Message, Spec, Struct, between, i8, i16, i32, i64, since, tag
from ottla.wire.primitives import Buffer

_VERSION: Final = struct.Struct(">h")
_M = TypeVar("_M", bound=Message)


class OffsetCommitKey(Message):
    """Whose offset of which partition."""

    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=None)

    group: str = ""
    topic: str = ""
    partition: i32 = 0


class OffsetCommitValue(Message):
    """A committed offset. Kafka 3.9 writes version 3, or 1 when the client gave a time to expire."""

    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=4)

    offset: i64 = 0
    leader_epoch: Annotated[i32, since(3)] = -1
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: Annotated[i64, between(1, 1)] = -1


class GroupMetadataKey(Message):
    """Which group."""

    spec: ClassVar[Spec] = Spec(versions=(2, 2), flexible=None)

    group: str = ""


class MemberMetadata(Struct):
    """One member of a group's generation."""

    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[i32, since(1)] = -1
    session_timeout: i32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Message):
    """One generation of a group. Kafka 3.9 writes version 3."""

    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=4)

    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[i64, since(2)] = -1
    members: list[MemberMetadata] = []


class TransactionLogKey(Message):
    """Whose transaction."""

    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=None)

    transactional_id: str = ""


class PartitionsSchema(Struct):
    """Partitions of one topic in a transaction."""

    topic: str = ""
    partition_ids: tuple[i32, ...] = ()


class TransactionLogValue(Message):
    """The state of a transaction. Kafka 3.9 in ZooKeeper mode writes version 0.

    The tagged fields of version 1 are KIP-890's and KIP-939's; Kafka 3.9 skips them.
    """

    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=1)

    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_timeout_ms: i32 = 0
    transaction_status: i8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: i64 = 0
    transaction_start_timestamp_ms: i64 = 0
    next_producer_id: Annotated[i64, since(1), tag(1)] = -1
    next_producer_epoch: Annotated[i16, since(1), tag(3)] = -1


TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The names of ``transaction_status``, by its number."""

GROUP_METADATA_KEY_VERSION: Final = 2
TRANSACTION_LOG_KEY_VERSION: Final = 0


def encode_stored(message: Message, version: int) -> bytes:
    """A stored key or value: its version, then its fields."""
    return _VERSION.pack(version) + encode_bytes(message, version)


def decode_stored(cls: type[_M], stored: Buffer) -> _M:
    """A stored key or value in the version that it names."""
    return decode(cls, stored_version(stored), stored, _VERSION.size)


def stored_version(stored: Buffer) -> int:
    """The version that a stored key or value names."""
    if len(stored) < _VERSION.size:
        raise MalformedRequest("a stored key or value without its version")
    version: int = _VERSION.unpack_from(stored, 0)[0]
    return version


def decode_group_key(stored: Buffer) -> OffsetCommitKey | GroupMetadataKey | None:
    """A key of ``__consumer_offsets``; ``None`` if it is of a kind that we do not know and must skip."""
    version = stored_version(stored)
    if version in (0, 1):
        return decode_stored(OffsetCommitKey, stored)
    if version == GROUP_METADATA_KEY_VERSION:
        return decode_stored(GroupMetadataKey, stored)
    return None


def decode_transaction_key(stored: Buffer) -> TransactionLogKey | None:
    """A key of ``__transaction_state``; ``None`` if it is of a kind that we do not know and must skip."""
    if stored_version(stored) != TRANSACTION_LOG_KEY_VERSION:
        return None
    return decode_stored(TransactionLogKey, stored)
