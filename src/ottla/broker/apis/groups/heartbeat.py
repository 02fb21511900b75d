"""Heartbeat: a member says that it lives, and hears whether its group gathers anew."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(node: Node, request: Request, body: HeartbeatRequest) -> HeartbeatResponse | None:
    host = node.group_coordinator
    found = host.find(body.group_id) if body.group_id else ErrorCode.INVALID_GROUP_ID
    if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse(error_code=ErrorCode.NONE)
    if isinstance(found, ErrorCode):
        return HeartbeatResponse(error_code=found)
    shard, number = found
    effects = shard.heartbeat(
        host.token(request.reply),
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id,
        host.now(),
    )
    host.perform(number, effects)
    return None
