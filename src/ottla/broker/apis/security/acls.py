"""DescribeAcls, CreateAcls and DeleteAcls 0-3: the cluster's access rules. Any broker takes them."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.access.rule_store import RuleStore
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps
from ottla.model.errors import ErrorCode
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import (
    CLUSTER_NAME,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    Rule,
)
from ottla.wire.apis.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.apis.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.apis.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHORIZER_TO_DESCRIBE = "No Authorizer is configured on the broker"
K = TypeVar("K", ResourceType, PatternType, Operation, Permission)


def _kind(kind: type[K], number: int) -> K:
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def describe(node: Node, request: Request, body: DescribeAclsRequest) -> DescribeAclsResponse:
    """Answered from memory, as in Kafka."""
    if node.authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TO_DESCRIBE
        )
    wanted = _filter(body.resource_type_filter, body.resource_name_filter, body)
    if not wanted.is_readable:
        words = "The AclBindingFilter must not contain UNKNOWN elements."
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=words)
    found: dict[Resource, list[AclDescription]] = {}
    for resource, entry in sorted(filter(wanted.matches, node.authorizer.rules)):
        row = AclDescription(entry.principal, entry.host, entry.operation, entry.permission)
        found.setdefault(resource, []).append(row)
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(resource.type, resource.name, resource.pattern, rows)
            for resource, rows in found.items()
        ],
    )


def _filter(kind: int, name: str | None, row: Any) -> AclFilter:
    return AclFilter(
        _kind(ResourceType, kind),
        name,
        _kind(PatternType, row.pattern_type_filter),
        row.principal_filter,
        row.host_filter,
        _kind(Operation, row.operation),
        _kind(Permission, row.permission_type),
    )


def create(node: Node, request: Request, body: CreateAclsRequest) -> CreateAclsResponse | None:
    """Each rule has its own answer; those of one resource are written together."""
    store = node.rule_store
    if store is None:
        refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=[refusal for _ in body.creations])
    rules = [_rule(row) for row in body.creations]

    def steps() -> Steps[CreateAclsResponse]:
        wanted: dict[Resource, set[Entry]] = {}
        for rule in rules:
            if isinstance(rule, Rule):
                wanted.setdefault(rule.resource, set()).add(rule.entry)
        failures: dict[Resource, str | None] = {}
        for resource, entries in wanted.items():
            failures[resource] = yield from store.change(resource, _with(entries))
        rows = [
            rule if isinstance(rule, AclCreationResult) else _written(failures[rule.resource])
            for rule in rules
        ]
        return CreateAclsResponse(results=rows)

    node.tasks.spawn(steps(), request, request.reply)
    return None


def _with(more: set[Entry]) -> Callable[[frozenset[Entry]], frozenset[Entry]]:
    return lambda before: before | more


def _written(failure: str | None) -> AclCreationResult:
    if failure is None:
        return AclCreationResult()
    return AclCreationResult(ErrorCode.UNKNOWN_SERVER_ERROR, failure)


def _rule(row: AclCreation) -> Rule | AclCreationResult:
    """The rule, or why there can be none."""
    kind = _kind(ResourceType, row.resource_type)
    pattern = _kind(PatternType, row.resource_pattern_type)
    operation, permission = _kind(Operation, row.operation), _kind(Permission, row.permission_type)
    if not (kind and pattern and operation and permission):
        return AclCreationResult(ErrorCode.INVALID_REQUEST, "Unknown element in the ACL binding.")
    if kind is ResourceType.CLUSTER and row.resource_name != CLUSTER_NAME:
        words = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return AclCreationResult(ErrorCode.INVALID_REQUEST, words)
    if not row.resource_name:
        return AclCreationResult(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    if "/" in row.resource_name:
        return AclCreationResult(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
    is_odd = pattern in (PatternType.ANY, PatternType.MATCH) or 1 in (kind, operation, permission)
    if is_odd or not all(row.principal.partition(":")[::2]):
        return AclCreationResult(
            ErrorCode.UNKNOWN_SERVER_ERROR, "A rule names one principal and one resource."
        )
    return Rule(
        Resource(kind, row.resource_name, pattern), Entry(row.principal, row.host, operation, permission)
    )


def delete(node: Node, request: Request, body: DeleteAclsRequest) -> DeleteAclsResponse | None:
    """A rule counts under the first filter that means it."""
    store = node.rule_store
    if node.authorizer is None or store is None:
        refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refusal for _ in body.filters])
    filters = [_filter(row.resource_type_filter, row.resource_name_filter, row) for row in body.filters]
    rules = node.authorizer.rules
    resources = sorted({rule.resource for rule in rules if any(each.matches(rule) for each in filters)})
    node.tasks.spawn(_delete(store, filters, resources), request, request.reply)
    return None


def _delete(
    store: RuleStore, filters: list[AclFilter], resources: list[Resource]
) -> Steps[DeleteAclsResponse]:
    rows: list[list[DeleteAclsMatchingAcl]] = [[] for _ in filters]
    for resource in resources:
        gone: dict[Entry, int] = {}

        def without(
            before: frozenset[Entry], resource: Resource = resource, gone: dict[Entry, int] = gone
        ) -> frozenset[Entry]:
            gone.clear()
            for entry in before:
                for place, each in enumerate(filters):
                    if each.is_readable and each.matches(Rule(resource, entry)):
                        gone[entry] = place
                        break
            return before - gone.keys()

        failure = yield from store.change(resource, without)
        for entry in sorted(gone):
            rows[gone[entry]].append(_deleted(resource, entry, failure))
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_message=None, matching_acls=matching)
            if each.is_readable
            else DeleteAclsFilterResult(
                ErrorCode.INVALID_REQUEST, "Filters must not contain UNKNOWN elements."
            )
            for each, matching in zip(filters, rows, strict=True)
        ]
    )


def _deleted(resource: Resource, entry: Entry, failure: str | None) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if failure is None else ErrorCode.UNKNOWN_SERVER_ERROR,
        error_message=failure,
        resource_type=resource.type,
        resource_name=resource.name,
        pattern_type=resource.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
