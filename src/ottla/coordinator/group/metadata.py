"""A group's metadata: from the live group to its record, and back after a load."""

from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import Member, Protocol
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.stored.records import metadata_record
from ottla.coordinator.shard import StoredRecord
from ottla.model.errors import MalformedRequest
from ottla.wire.consumer_protocol import decode_subscribed_topics
from ottla.wire.stored import GroupMetadataValue, MemberMetadata, decode_stored


def group_record(group: Group, assignments: dict[str, bytes], wall_ms: int) -> StoredRecord:
    """The live group with these assignments; members without one keep theirs."""
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
    return metadata_record(group.group_id, value)


def restore(group: Group) -> None:
    """Make the live group from its stored metadata: Stable if that has members, else Empty.

    Raises MalformedRequest if the metadata cannot be read.
    """
    assert group.stored.metadata is not None, "only a group with metadata has members to restore"
    stored = decode_stored(GroupMetadataValue, group.stored.metadata)
    group.state = GroupState.STABLE if stored.members else GroupState.EMPTY
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol
    group.state_timestamp_ms = stored.current_state_timestamp
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


def stored_assignments(group: Group) -> dict[str, bytes]:
    """The assignment of each member, as the log has it."""
    if group.stored.metadata is None:
        return {}
    stored = decode_stored(GroupMetadataValue, group.stored.metadata)
    return {member.member_id: bytes(member.assignment) for member in stored.members}


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics that a consumer group reads; None for other groups, or if a subscription cannot be read."""
    if not group.is_consumer_group:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(decode_subscribed_topics(member.metadata_for(group.protocol_name)))
        except MalformedRequest:
            return None
    return frozenset(topics)
