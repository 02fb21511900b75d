"""LeaveGroup: one member leaves (before version 3), or several, each with its own outcome."""

from typing import Any

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

FIRST_WITH_SEVERAL = 3


def handle(node: Node, request: Request, body: LeaveGroupRequest) -> LeaveGroupResponse | None:
    host = node.group_coordinator
    found = host.find(body.group_id) if body.group_id else ErrorCode.INVALID_GROUP_ID
    if isinstance(found, ErrorCode):
        return LeaveGroupResponse(error_code=found)
    several = request.api_version >= FIRST_WITH_SEVERAL
    leaving = body.members if several else [MemberIdentity(member_id=body.member_id)]

    def reply(response: Any) -> None:
        if not several and response.error_code == ErrorCode.NONE:
            response.error_code = response.members[0].error_code
        request.reply(response)

    shard, number = found
    host.perform(number, shard.leave(host.token(reply), body.group_id, leaving, host.now()))
    return None
