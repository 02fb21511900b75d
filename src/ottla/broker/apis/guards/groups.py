"""Guards of APIs that name groups."""

from collections.abc import Callable
from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import FORBIDDEN_GROUP, FORBIDDEN_TRANSACTION, RowKind, adding
from ottla.broker.clients.request import Request
from ottla.security.acls.kinds import ResourceType
from ottla.wire.apis import delete_groups as delete_api
from ottla.wire.apis import describe_groups as describe_api
from ottla.wire.apis import find_coordinator as find_api
from ottla.wire.apis import list_groups as list_api
from ottla.wire.apis import offset_commit as commit_api
from ottla.wire.apis import offset_delete as offset_delete_api
from ottla.wire.apis import offset_fetch as fetch_api

_COMMITTED = RowKind(
    commit_api.OffsetCommitResponseTopic,
    lambda index, error: commit_api.OffsetCommitResponsePartition(index, error),
)
_FETCHED = RowKind(
    fetch_api.OffsetFetchResponseTopic,
    lambda index, error: fetch_api.OffsetFetchResponsePartition(index, -1, error_code=error),
)
_FETCHED_OF_GROUP = RowKind(
    fetch_api.OffsetFetchResponseTopics,
    lambda index, error: fetch_api.OffsetFetchResponsePartitions(index, -1, error_code=error),
)
_DELETED = RowKind(
    offset_delete_api.OffsetDeleteResponseTopic,
    lambda index, error: offset_delete_api.OffsetDeleteResponsePartition(index, error),
)
_GROUP, _TRANSACTION = 0, 1
_WORDS = {_GROUP: "Group authorization failed.", _TRANSACTION: "Transactional Id authorization failed."}


def offset_commit(node: Any, access: Access, request: Request, body: commit_api.OffsetCommitRequest) -> Any:
    if not access.group(body.group_id):
        return commit_api.OffsetCommitResponse(topics=_COMMITTED.refused(body.topics, FORBIDDEN_GROUP))
    body.topics, rows = _COMMITTED.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None
    return None


def offset_fetch(node: Any, access: Access, request: Request, body: fetch_api.OffsetFetchRequest) -> Any:
    """Who asks for all topics sees those that it may describe."""
    if request.api_version >= 8:
        return _offset_fetch_of_groups(access, request, body)
    if not access.group(body.group_id):
        return _group_refused(request, body)
    if body.topics is None:
        request.amend = lambda response: _without_hidden(access, response)
        return None
    body.topics, rows = _FETCHED.split(access, body.topics)
    request.amend = _unless_it_failed(adding("topics", rows)) if rows else None
    return None


def _unless_it_failed(amend: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda response: response if response.error_code else amend(response)


def _group_refused(request: Request, body: fetch_api.OffsetFetchRequest) -> Any:
    """Version 1 has no place for it, and Kafka then answers nothing at all."""
    if request.api_version >= 2:
        return fetch_api.OffsetFetchResponse(error_code=FORBIDDEN_GROUP)
    rows = _FETCHED.refused(body.topics or (), FORBIDDEN_GROUP) if request.api_version == 0 else []
    return fetch_api.OffsetFetchResponse(topics=rows)


def _offset_fetch_of_groups(access: Access, request: Request, body: fetch_api.OffsetFetchRequest) -> None:
    asked = body.groups
    refused: dict[int, Any] = {}
    more: dict[int, list[Any]] = {}
    hides: set[int] = set()
    for place, group in enumerate(asked):
        if not access.group(group.group_id):
            refused[place] = fetch_api.OffsetFetchResponseGroup(group.group_id, error_code=FORBIDDEN_GROUP)
        elif group.topics is None:
            hides.add(place)
        else:
            group.topics, more[place] = _FETCHED_OF_GROUP.split(access, group.topics)
    body.groups = [group for place, group in enumerate(asked) if place not in refused]

    def amend(response: Any) -> Any:
        answered = iter(response.groups)
        response.groups = [refused.get(place) or next(answered) for place in range(len(asked))]
        for place, group in enumerate(response.groups):
            if place in hides:
                _without_hidden(access, group)
            elif more.get(place) and not group.error_code:
                group.topics = [*group.topics, *more[place]]
        return response

    request.amend = amend


def _without_hidden(access: Access, answer: Any) -> Any:
    shown = access.topics((topic.name for topic in answer.topics), is_quiet=True)
    answer.topics = [topic for topic in answer.topics if topic.name in shown]
    return answer


def find_coordinator(
    node: Any, access: Access, request: Request, body: find_api.FindCoordinatorRequest
) -> Any:
    """Keys of another kind are left to the handler, which knows none."""
    if body.key_type not in _WORDS:
        return None
    may = access.group if body.key_type == _GROUP else access.transaction
    error = FORBIDDEN_GROUP if body.key_type == _GROUP else FORBIDDEN_TRANSACTION
    if request.api_version < 4:
        if may(body.key):
            return None
        return find_api.FindCoordinatorResponse(
            error_code=error, error_message=_WORDS[body.key_type], node_id=-1, host="", port=-1
        )
    asked = body.coordinator_keys
    refused = {
        place: find_api.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message="")
        for place, key in enumerate(asked)
        if not may(key)
    }
    body.coordinator_keys = tuple(key for place, key in enumerate(asked) if place not in refused)

    def amend(response: Any) -> Any:
        answered = iter(response.coordinators)
        response.coordinators = [refused.get(place) or next(answered) for place in range(len(asked))]
        return response

    request.amend = amend
    return None


def describe_groups(
    node: Any, access: Access, request: Request, body: describe_api.DescribeGroupsRequest
) -> None:
    refused = dict.fromkeys(name for name in body.groups if not access.group(name))
    body.groups = tuple(name for name in body.groups if name not in refused)
    rows = [describe_api.DescribedGroup(FORBIDDEN_GROUP, name) for name in refused]

    def amend(response: Any) -> Any:
        for row in response.groups if body.include_authorized_operations else ():
            if not row.error_code:
                row.authorized_operations = access.operations(ResourceType.GROUP, row.group_id)
        response.groups = [*rows, *response.groups]
        return response

    request.amend = amend


def list_groups(node: Any, access: Access, request: Request, body: list_api.ListGroupsRequest) -> None:
    """Who may describe the cluster sees all groups."""
    if access.cluster(is_quiet=True):
        return

    def amend(response: Any) -> Any:
        response.groups = [row for row in response.groups if access.group(row.group_id)]
        return response

    request.amend = amend


def delete_groups(node: Any, access: Access, request: Request, body: delete_api.DeleteGroupsRequest) -> None:
    names = dict.fromkeys(body.groups_names)
    refused = dict.fromkeys(name for name in names if not access.group(name))
    body.groups_names = tuple(name for name in names if name not in refused)
    rows = [delete_api.DeletableGroupResult(name, FORBIDDEN_GROUP) for name in refused]
    request.amend = adding("results", rows) if rows else None


def offset_delete(
    node: Any, access: Access, request: Request, body: offset_delete_api.OffsetDeleteRequest
) -> Any:
    if not access.group(body.group_id):
        return offset_delete_api.OffsetDeleteResponse(error_code=FORBIDDEN_GROUP)
    body.topics, rows = _DELETED.split(access, body.topics)
    if rows:
        request.amend = _unless_it_failed(adding("topics", rows))
    return None
