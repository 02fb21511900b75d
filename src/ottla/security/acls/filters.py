"""Which access rules a filter means, as DescribeAcls, DeleteAcls and kafka-acls have it."""

from typing import NamedTuple

from ottla.security.acls.kinds import (
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    Rule,
)


class AclFilter(NamedTuple):
    """What is ANY or None matches everything."""

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, rule: Rule) -> bool:
        """Whether the rule is meant."""
        entry = rule.entry
        return (
            self._matches_resource(rule.resource)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def _matches_resource(self, resource: Resource) -> bool:
        if self.type not in (ResourceType.ANY, resource.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern in (PatternType.ANY, resource.pattern):
            return self.name == resource.name
        if resource.pattern is PatternType.PREFIXED:
            return self.name.startswith(resource.name)
        return resource.name in (self.name, WILDCARD)

    @property
    def is_readable(self) -> bool:
        """Whether all of it is known here."""
        return 0 not in (self.type, self.pattern, self.operation, self.permission)
