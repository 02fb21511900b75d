"""Access rules: found, made and deleted. Any broker takes them."""

from collections.abc import Iterable

from ottla.client.admin.asking import ask_any, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import Entry, PatternType, Permission, Resource, ResourceType, Rule
from ottla.security.acls.kinds import Operation as Right
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(engine: Engine, wanted: AclFilter, timeout_ms: int | None = None) -> Operation[list[Rule]]:
    """The rules that the filter means."""
    response = yield from ask_any(engine, DescribeAclsRequest(*wanted), DescribeAclsResponse, timeout_ms)
    raise_for(response.error_code, response.error_message)
    return [
        Rule(
            Resource(ResourceType(row.resource_type), row.resource_name, PatternType(row.pattern_type)),
            Entry(each.principal, each.host, Right(each.operation), Permission(each.permission_type)),
        )
        for row in response.resources
        for each in row.acls
    ]


def create_acls(engine: Engine, rules: Iterable[Rule], timeout_ms: int | None = None) -> Operation[None]:
    """Make these rules; what is there already stays."""
    rows = [
        AclCreation(
            rule.resource.type, rule.resource.name, rule.resource.pattern, rule.entry.principal,
            rule.entry.host, rule.entry.operation, rule.entry.permission,
        )
        for rule in rules
    ]  # fmt: skip
    response = yield from ask_any(engine, CreateAclsRequest(creations=rows), CreateAclsResponse, timeout_ms)
    for row in response.results:
        raise_for(row.error_code, row.error_message)


def delete_acls(
    engine: Engine, filters: Iterable[AclFilter], timeout_ms: int | None = None
) -> Operation[int]:
    """Delete what these filters mean; how many rules that were."""
    rows = [DeleteAclsFilter(*each) for each in filters]
    response = yield from ask_any(engine, DeleteAclsRequest(filters=rows), DeleteAclsResponse, timeout_ms)
    count = 0
    for result in response.filter_results:
        raise_for(result.error_code, result.error_message)
        for row in result.matching_acls:
            raise_for(row.error_code, row.error_message)
            count += 1
    return count
