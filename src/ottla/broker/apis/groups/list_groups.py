"""ListGroups: the groups this broker coordinates, by state and type."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.group.queries import list_groups
from ottla.model.errors import ErrorCode
from ottla.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(node: Node, request: Request, body: ListGroupsRequest) -> ListGroupsResponse:
    host = node.group_coordinator
    states = frozenset(state.lower() for state in body.states_filter)
    types = frozenset(kind.lower() for kind in body.types_filter)
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if host.is_loading else ErrorCode.NONE
    return ListGroupsResponse(
        error_code=error,
        groups=[row for shard in host.serving() for row in list_groups(shard.groups.values(), states, types)],
    )
