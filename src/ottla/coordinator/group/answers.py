"""The responses of the group protocol."""

from collections.abc import Set as AbstractSet

from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY, Member
from ottla.coordinator.group.requests import Commit
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.apis.sync_group import SyncGroupResponse

NO_GENERATION = -1


def join_refused(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """A refused JoinGroup, with the id of the request, or a new one with MEMBER_ID_REQUIRED."""
    return JoinGroupResponse(
        error_code=error, generation_id=NO_GENERATION, protocol_name=None, leader=NOBODY, member_id=member_id
    )


def joined(group: Group, member: Member, *, tells_members: bool) -> JoinGroupResponse:
    """The generation that a member is in; only the leader gets the list of members."""
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or NOBODY,
        member_id=member.member_id,
        members=_roster(group) if tells_members else [],
    )


def static_rejoined(
    group: Group, member: Member, old_leader: str | None, may_skip_assignment: bool
) -> JoinGroupResponse:
    """A static member that came back while the group is stable must not compute an assignment (KIP-814).

    Version 9 has ``skip_assignment`` for that. Older clients get the leader's old id, which no member has
    now, so that none takes itself for the leader.
    """
    response = joined(group, member, tells_members=False)
    if may_skip_assignment:
        if group.leader == member.member_id:
            response.members = _roster(group)
            response.skip_assignment = True
    else:
        response.leader = old_leader or NOBODY
    return response


def static_not_stored(group: Group, old_leader: str | None, error: ErrorCode) -> JoinGroupResponse:
    """The new id of a static member could not be written, so the old id stays valid."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=old_leader or NOBODY,
        member_id=NOBODY,
    )


def _roster(group: Group) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata_for(group.protocol_name),
        )
        for member in group.members.values()
    ]


def synced(group: Group, member: Member) -> SyncGroupResponse:
    """A member's assignment."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    """A refused SyncGroup."""
    return SyncGroupResponse(error_code=error, assignment=b"")


def commit_answer(
    request: Commit,
    error: ErrorCode,
    too_large: AbstractSet[TopicPartition] = frozenset(),
) -> OffsetCommitResponse:
    """One code per partition, topics in the order of the request."""
    codes: dict[TopicPartition, ErrorCode] = {
        tp: ErrorCode.OFFSET_METADATA_TOO_LARGE if tp in too_large else error for tp in request.offsets
    }
    codes.update(request.refused)
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for tp, code in codes.items():
        topics.setdefault(tp.topic, []).append(
            OffsetCommitResponsePartition(partition_index=tp.partition, error_code=code)
        )
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )
