"""Groups and offsets as records of ``__consumer_offsets``."""

from ottla.coordinator.group.committed import CommittedOffset
from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.group import Group
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.consumer_protocol import decode_subscribed_topics
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_stored,
)

OFFSET_KEY_VERSION = 1
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_WITH_EXPIRY_VERSION = 1
GROUP_KEY_VERSION = 2
GROUP_VALUE_VERSION = 3


def offset_record(group_id: str, tp: TopicPartition, committed: CommittedOffset) -> StoredRecord:
    """A commit; one whose client asked for a retention of its own is written in the old form that has it."""
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


def group_record(group: Group, assignments: dict[str, bytes], wall_ms: int) -> StoredRecord:
    """The group as it is, with these shares; members without one keep what they have."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_timestamp_ms if group.state_timestamp_ms >= 0 else wall_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_for(group.protocol_name),
                assignment=assignments.get(member.member_id, member.assignment),
            )
            for member in group.members.values()
        ],
    )
    return StoredRecord(_group_key(group.group_id), encode_stored(value, GROUP_VALUE_VERSION))


def group_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(_group_key(group_id), None)


def _group_key(group_id: str) -> bytes:
    return encode_stored(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics a consumer group reads; unknown when it is none, or when a member's word is unreadable."""
    if not group.is_consumer_group:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(decode_subscribed_topics(member.metadata_for(group.protocol_name)))
        except MalformedRequest:
            return None
    return frozenset(topics)
