"""SyncGroup: the leader brings the assignment, every member takes its share."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.coordinator.group import answers
from ottla.model.errors import ErrorCode
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

FIRST_WITH_PROTOCOL = 5


def handle(node: "Node", request: Request, body: SyncGroupRequest) -> SyncGroupResponse | None:
    if request.api_version >= FIRST_WITH_PROTOCOL and (
        body.protocol_type is None or body.protocol_name is None
    ):
        return answers.sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    found = node.coordinator.find(body.group_id)
    if not body.group_id:
        found = ErrorCode.INVALID_GROUP_ID
    if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return answers.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)
    if isinstance(found, ErrorCode):
        return answers.sync_refused(found)
    shard, number = found
    node.coordinator.perform(number, shard.sync(node.coordinator.ask(request), body, node.coordinator.now()))
    return None
