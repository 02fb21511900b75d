"""DescribeGroups: state, protocol and members of groups this broker coordinates."""

from ottla.broker.clients import authorized_operations
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.group.queries import describe, describe_refused
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


def handle(node: Node, request: Request, body: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[_describe(node, group_id, body.include_authorized_operations) for group_id in body.groups]
    )


def _describe(node: Node, group_id: str, with_operations: bool) -> DescribedGroup:
    found = node.group_coordinator.find(group_id)  # "" is a name here, as in Kafka
    if isinstance(found, ErrorCode):
        return describe_refused(group_id, found)
    shard, _ = found
    answer = describe(shard.groups.get(group_id), group_id)
    if with_operations:
        answer.authorized_operations = authorized_operations.GROUP
    return answer
