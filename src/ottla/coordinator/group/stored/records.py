"""Keys and values of ``__consumer_offsets``."""

from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import StoredRecord
from ottla.model.ids import TopicPartition
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_stored,
)

OFFSET_KEY_VERSION = 1
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_WITH_EXPIRY_VERSION = 1
GROUP_KEY_VERSION = 2
GROUP_VALUE_VERSION = 3
_NO_TOPIC = bytes(6)
"""The end of a key whose topic is empty: its length, and partition 0."""


def offset_record(group_id: str, tp: TopicPartition, committed: CommittedOffset) -> StoredRecord:
    """A commit. If the client asked for a retention time, the value has version 1, which stores it."""
    has_expiry = committed.expire_timestamp_ms >= 0
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    version = OFFSET_VALUE_WITH_EXPIRY_VERSION if has_expiry else OFFSET_VALUE_VERSION
    return StoredRecord(offset_key(group_id, tp), encode_stored(value, version))


def offset_tombstone(group_id: str, tp: TopicPartition) -> StoredRecord:
    return StoredRecord(offset_key(group_id, tp), None)


def offset_key(group_id: str, tp: TopicPartition) -> bytes:
    """The key of a group's offset of a partition."""
    key = OffsetCommitKey(group=group_id, topic=tp.topic, partition=tp.partition)
    return encode_stored(key, OFFSET_KEY_VERSION)


def offset_keys_head(group_id: str) -> bytes:
    """How all keys of a group's offsets begin."""
    return offset_key(group_id, TopicPartition("", 0))[: -len(_NO_TOPIC)]


def metadata_record(group_id: str, value: GroupMetadataValue) -> StoredRecord:
    """A group's metadata: one generation with its members."""
    return StoredRecord(_group_key(group_id), encode_stored(value, GROUP_VALUE_VERSION))


def group_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(_group_key(group_id), None)


def _group_key(group_id: str) -> bytes:
    return encode_stored(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)
