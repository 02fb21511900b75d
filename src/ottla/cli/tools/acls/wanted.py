"""The flags of ``ottla acls`` as rules and filters."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.cli.shared.refusal import UsageRefused
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import (
    CLUSTER_NAME,
    OPERATIONS,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)

Whom = tuple[list[str], list[str]]
"""Principals, and the hosts that they come from."""
_CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says."""

    topics: list[str]
    groups: list[str]
    transactional_ids: list[str]
    tokens: list[str]
    users: list[str]
    is_cluster: bool
    pattern: str
    operations: list[str]
    allowed: Whom
    denied: Whom
    is_producer: bool
    is_consumer: bool
    is_idempotent: bool

    def pattern_type(self) -> PatternType:
        found = PatternType.__members__.get(self.pattern.upper())
        if not found:
            raise UsageRefused(
                f"{self.pattern!r} is no pattern type; there are literal, prefixed, any, match"
            )
        return found

    def _names(self) -> Iterator[tuple[ResourceType, str]]:
        for kind, names in (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.CLUSTER, [CLUSTER_NAME] if self.is_cluster else []),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.tokens),
            (ResourceType.USER, self.users),
        ):
            for name in names:
                yield kind, name

    def filters(self) -> list[tuple[ResourceType, str | None, PatternType]]:
        """The resources to look for; all, if none is named."""
        pattern = self.pattern_type()
        found: list[tuple[ResourceType, str | None, PatternType]] = []
        for kind, name in self._names():
            is_cluster = kind is ResourceType.CLUSTER
            found.append((kind, name, PatternType.LITERAL if is_cluster else pattern))
        return found or [(ResourceType.ANY, None, pattern if self.pattern != "literal" else PatternType.ANY)]

    def rules(self) -> dict[Resource, list[Entry]]:
        """What to add, by resource."""
        pattern = self.pattern_type()
        if pattern in (PatternType.ANY, PatternType.MATCH):
            raise UsageRefused("to add a rule, --resource-pattern-type is literal or prefixed")
        if not (self.allowed[0] or self.denied[0]):
            raise UsageRefused("say whom: --allow-principal or --deny-principal")
        rules: dict[Resource, list[Entry]] = {}
        for kind, name in self._names():
            shown = PatternType.LITERAL if kind is ResourceType.CLUSTER else pattern
            entries = [each for what in self._rights(kind) for each in self._entries(what)]
            if entries:
                rules[Resource(kind, name, shown)] = entries
        if self.is_producer and self.is_idempotent:
            cluster = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
            rules.setdefault(cluster, []).extend(self._entries(Operation.IDEMPOTENT_WRITE))
        if not rules:
            raise UsageRefused("say what: --topic, --group, --cluster, --transactional-id, …")
        return rules

    def removed(self) -> list[AclFilter]:
        """What to remove: the rules that would be added, or all of the named resources."""
        has_whom = bool(self.allowed[0] or self.denied[0])
        if not has_whom:
            filters = self.filters()
            if filters[0][1] is None:
                raise UsageRefused("say what: --topic, --group, --cluster, --transactional-id, …")
            return [AclFilter(*each) for each in filters]
        return [
            AclFilter(kind, name, pattern, entry.principal, entry.host, entry.operation, entry.permission)
            for kind, name, pattern in self.filters()
            for what in self._rights(kind)
            for entry in self._entries(what)
        ]

    def _rights(self, kind: ResourceType) -> list[Operation]:
        """What of the resource is meant."""
        if self.is_producer or self.is_consumer:
            found = _PRODUCER.get(kind, ()) if self.is_producer else ()
            more = _CONSUMER.get(kind, ()) if self.is_consumer else ()
            return list(dict.fromkeys([*found, *more]))
        return [self._operation(name, kind) for name in self.operations]

    @staticmethod
    def _operation(name: str, kind: ResourceType) -> Operation:
        known = {
            each.title.lower(): each for each in (*OPERATIONS.get(kind, tuple(Operation)), Operation.ALL)
        }
        found = known.get(name.replace("_", "").lower())
        if found is None:
            names = ", ".join(each.title for each in known.values())
            raise UsageRefused(f"{name!r} is no operation on a {kind.title}; there are {names}")
        return found

    def _entries(self, operation: Operation) -> Iterator[Entry]:
        for permission, (principals, hosts) in (
            (Permission.ALLOW, self.allowed),
            (Permission.DENY, self.denied),
        ):
            for principal in principals:
                if not all(principal.partition(":")[::2]):
                    raise UsageRefused(f"{principal!r} is no principal; write it as User:{principal}")
                for host in hosts or ["*"]:
                    yield Entry(principal, host, operation, permission)
