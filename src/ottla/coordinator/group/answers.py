"""The replies of the group protocol, built from the group as it is."""

from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY, Member
from ottla.model.errors import ErrorCode
from ottla.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.apis.sync_group import SyncGroupResponse

NO_GENERATION = -1


def join_refused(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """A JoinGroup that did not get in; the id is echoed, or handed out with MEMBER_ID_REQUIRED."""
    return JoinGroupResponse(
        error_code=error, generation_id=NO_GENERATION, protocol_name=None, leader=NOBODY, member_id=member_id
    )


def joined(group: Group, member: Member, *, tells_members: bool) -> JoinGroupResponse:
    """The generation a member is in; only the leader hears who else is."""
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
    """A static member that came back while the group is stable must not compute an assignment.

    Version 9 says so with ``skip_assignment``; older clients are told the leader's old id, which is
    nobody's now, so that none of them takes itself for the leader (KIP-814).
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
    """The replacement of a static member could not be written: it has not happened."""
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
    """A member's share."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    """No share, and why."""
    return SyncGroupResponse(error_code=error, assignment=b"")
