"""SyncGroup: the leader brings the assignment, every member takes its share."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.group import answers
from ottla.model.errors import ErrorCode
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_WITH_PROTOCOL = 5


def handle(node: Node, request: Request, body: SyncGroupRequest) -> SyncGroupResponse | None:
    host = node.group_coordinator
    if request.api_version >= FIRST_WITH_PROTOCOL and (
        body.protocol_type is None or body.protocol_name is None
    ):
        return answers.sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    found = host.find(body.group_id)
    if not body.group_id:
        found = ErrorCode.INVALID_GROUP_ID
    if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return answers.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)
    if isinstance(found, ErrorCode):
        return answers.sync_refused(found)
    shard, number = found
    host.perform(number, shard.sync(host.token(request.reply), body, host.now()))
    return None
