"""ListGroups: the groups this broker coordinates, by state and type."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.coordinator.group.queries import list_groups
from ottla.model.errors import ErrorCode
from ottla.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: ListGroupsRequest) -> ListGroupsResponse:
    host = node.coordinator
    states = frozenset(state.lower() for state in body.states_filter)
    types = frozenset(kind.lower() for kind in body.types_filter)
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if host.is_loading else ErrorCode.NONE
    return ListGroupsResponse(
        error_code=error,
        groups=[row for shard in host.serving() for row in list_groups(shard.groups.values(), states, types)],
    )
