"""All access rules, and what they say about one question, as Kafka's AclAuthorizer decides.

No rule is more specific than another: one that denies wins over all that allow.
"""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple

from ottla.security.acls.kinds import (
    EVERYBODY,
    IMPLYING,
    WILDCARD,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    Rule,
)


class Question(NamedTuple):
    """May this principal, from this host, do this to that?"""

    principal: str
    host: str
    operation: Operation
    type: ResourceType
    name: str


class Reason(Enum):
    """What decided."""

    SUPER_USER = "a super user may do everything"
    NO_RULES = "no rule protects it, and allow.everyone.if.no.acl.found is true"
    ALLOWED = "a rule allows it"
    DENIED = "a rule denies it"
    NOT_ALLOWED = "no rule allows it"


class Verdict(NamedTuple):
    """The answer, and the rule it rests on, where it rests on one."""

    reason: Reason
    rule: Rule | None = None

    @property
    def is_allowed(self) -> bool:
        return self.reason not in (Reason.DENIED, Reason.NOT_ALLOWED)


class AclRules:
    """Rules by resource. Prefixes are found by their lengths, so that their number does not matter."""

    def __init__(self, super_users: Collection[str] = (), *, open_by_default: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._open_by_default = open_by_default
        self._entries: dict[Resource, frozenset[Entry]] = {}
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Rule]:
        for resource, entries in self._entries.items():
            for entry in entries:
                yield Rule(resource, entry)

    def of(self, resource: Resource) -> frozenset[Entry]:
        """What is said about exactly that resource."""
        return self._entries.get(resource, frozenset())

    def resources(self) -> list[Resource]:
        """All that have rules."""
        return list(self._entries)

    def put(self, resource: Resource, entries: Collection[Entry]) -> None:
        """From now on this is said about the resource; nothing means that it has no rules."""
        was_there = resource in self._entries
        if entries:
            self._entries[resource] = frozenset(entries)
        else:
            self._entries.pop(resource, None)
        if resource.pattern is PatternType.PREFIXED and was_there != bool(entries):
            lengths = self._prefix_lengths.setdefault(resource.type, {})
            length = len(resource.name)
            lengths[length] = lengths.get(length, 0) + (1 if entries else -1)
            if not lengths[length]:
                del lengths[length]

    def decide(self, question: Question) -> Verdict:
        """Super users, then denials, then permissions."""
        if question.principal in self._super_users:
            return Verdict(Reason.SUPER_USER)
        candidates = self._candidates(question.type, question.name)
        if not candidates:
            return Verdict(Reason.NO_RULES if self._open_by_default else Reason.NOT_ALLOWED)
        operation = question.operation
        denied = self._find(candidates, question, Permission.DENY, frozenset({operation, Operation.ALL}))
        if denied is not None:
            return Verdict(Reason.DENIED, denied)
        enough = IMPLYING.get(operation) or frozenset({operation, Operation.ALL})
        allowed = self._find(candidates, question, Permission.ALLOW, enough)
        return Verdict(Reason.NOT_ALLOWED) if allowed is None else Verdict(Reason.ALLOWED, allowed)

    def _candidates(self, kind: ResourceType, name: str) -> list[Resource]:
        """The resources with rules that the name belongs to."""
        found = [
            Resource(kind, name[:length], PatternType.PREFIXED)
            for length in self._prefix_lengths.get(kind, ())
            if length <= len(name)
        ]
        found += [Resource(kind, WILDCARD), Resource(kind, name)]
        return [resource for resource in dict.fromkeys(found) if resource in self._entries]

    def _find(
        self,
        candidates: list[Resource],
        question: Question,
        permission: Permission,
        operations: frozenset[Operation],
    ) -> Rule | None:
        for resource in candidates:
            for entry in self._entries[resource]:
                if (
                    entry.permission is permission
                    and entry.operation in operations
                    and entry.principal in (question.principal, EVERYBODY)
                    and entry.host in (question.host, WILDCARD)
                ):
                    return Rule(resource, entry)
        return None

    def decide_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there can be a resource of that type to which the principal may do that. As in Kafka,
        implied rights do not count here."""
        if principal in self._super_users:
            return True
        denied = self._named(principal, host, operation, kind, Permission.DENY)
        if Resource(kind, WILDCARD) in denied:
            return False
        if self._open_by_default:
            return True
        allowed = self._named(principal, host, operation, kind, Permission.ALLOW)
        return any(_is_reachable(resource, denied) for resource in allowed)

    def _named(
        self, principal: str, host: str, operation: Operation, kind: ResourceType, permission: Permission
    ) -> set[Resource]:
        wanted = [
            Entry(who, where, what, permission)
            for who in (principal, EVERYBODY)
            for where in (host, WILDCARD)
            for what in (operation, Operation.ALL)
        ]
        return {
            resource
            for resource, entries in self._entries.items()
            if resource.type is kind and not entries.isdisjoint(wanted)
        }


def _is_reachable(allowed: Resource, denied: set[Resource]) -> bool:
    """Whether something is left of what is allowed once the denials are taken away."""
    kind, name, pattern = allowed
    if pattern is PatternType.LITERAL and (name == WILDCARD or allowed in denied):
        return name == WILDCARD
    prefixes = (name[:length] for length in range(1, len(name) + 1))
    return not any(Resource(kind, prefix, PatternType.PREFIXED) in denied for prefix in prefixes)
