"""Groups and offsets as records of ``__consumer_offsets``, and back (the one door into loaded state)."""

from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.group import CommittedOffset, Group
from ottla.coordinator.group.members import Member, Protocol
from ottla.coordinator.group.states import GroupState
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.consumer_protocol import decode_subscription
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
    decode_stored,
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
    return StoredRecord(_offset_key(group_id, tp), encode_stored(value, version))


def offset_tombstone(group_id: str, tp: TopicPartition) -> StoredRecord:
    return StoredRecord(_offset_key(group_id, tp), None)


def _offset_key(group_id: str, tp: TopicPartition) -> bytes:
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
            topics.update(decode_subscription(member.metadata_for(group.protocol_name)).topics)
        except MalformedRequest:
            return None
    return frozenset(topics)


class Loader:
    """Rebuilds the groups of a shard from its records, in their order.

    Of each key only the last value counts, so records are kept as bytes and only the survivors are
    decoded: a topic that was long not compacted costs little more than a compacted one.
    """

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes | None] = {}
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.open_transactions: dict[int, list[StoredRecord]] = {}
        self.unreadable = 0
        """Records of a kind or version that we do not know, or that make no sense: skipped."""

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take one committed record."""
        self._latest[key] = value

    def apply_in_transaction(self, producer_id: int, record: StoredRecord) -> None:
        """Take one record of a transaction: it waits for the marker."""
        self.open_transactions.setdefault(producer_id, []).append(record)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker: what the producer wrote is applied now, or never was."""
        for record in self.open_transactions.pop(producer_id, []):
            if is_commit:
                self.apply(record.key, record.value)

    def decode_some(self, count: int) -> bool:
        """Decode up to that many survivors; true once all are done and ``groups`` can be taken."""
        for _ in range(min(count, len(self._latest))):
            key, value = self._latest.popitem()
            if value is None:
                continue
            try:
                self._decode(key, value)
            except MalformedRequest:
                self.unreadable += 1
        return not self._latest

    def _decode(self, raw_key: bytes, raw_value: bytes) -> None:
        key = decode_group_key(raw_key)
        if isinstance(key, OffsetCommitKey):
            stored = decode_stored(OffsetCommitValue, raw_value)
            self._offsets.setdefault(key.group, {})[TopicPartition(key.topic, key.partition)] = (
                CommittedOffset(
                    offset=stored.offset,
                    leader_epoch=stored.leader_epoch,
                    metadata=stored.metadata,
                    commit_timestamp_ms=stored.commit_timestamp,
                    expire_timestamp_ms=stored.expire_timestamp,
                )
            )
        elif isinstance(key, GroupMetadataKey):
            self._groups[key.group] = _restore(key.group, decode_stored(GroupMetadataValue, raw_value))
        else:
            self.unreadable += 1

    def groups(self) -> dict[str, Group]:
        """The groups as the log tells them; offsets without a group make one that has no members."""
        for group_id, offsets in self._offsets.items():
            group = self._groups.setdefault(group_id, Group(group_id))
            group.offsets = offsets
        return self._groups


def _restore(group_id: str, stored: GroupMetadataValue) -> Group:
    group = Group(
        group_id,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        state_timestamp_ms=stored.current_state_timestamp,
    )
    for known in stored.members:
        group.add(
            Member(
                member_id=known.member_id,
                group_instance_id=known.group_instance_id,
                client_id=known.client_id,
                client_host=known.client_host,
                rebalance_timeout_ms=known.rebalance_timeout
                if known.rebalance_timeout >= 0
                else known.session_timeout,
                session_timeout_ms=known.session_timeout,
                protocol_type=stored.protocol_type,
                protocols=(Protocol(stored.protocol or "", bytes(known.subscription)),),
                assignment=bytes(known.assignment),
            )
        )
    group.leader = stored.leader
    group.subscribed_topics = subscribed_topics(group)
    return group
