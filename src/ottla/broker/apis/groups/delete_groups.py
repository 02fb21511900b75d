"""DeleteGroups: groups without members go, with the offsets they committed."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(node: Node, request: Request, body: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results: list[DeletableGroupResult] = []
    for group_id in dict.fromkeys(body.groups_names):
        found = node.group_coordinator.find(group_id)  # "" is a name here, as in Kafka
        if isinstance(found, ErrorCode):
            results.append(DeletableGroupResult(group_id=group_id, error_code=found))
            continue
        shard, number = found
        error, effects = shard.delete_group(group_id, node.group_coordinator.now())
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
        node.group_coordinator.perform(number, effects)
    return DeleteGroupsResponse(results=results)
