"""Decides what principals may do, by the rules in ZooKeeper, and keeps Kafka's audit log.

Verdicts are remembered until any rule changes: most requests ask what was asked before.
"""

import logging
from typing import TypeAlias

from ottla.config.areas import AuthorizerConfig
from ottla.model.hosts import as_in_java
from ottla.security.acls.kinds import CLUSTER_NAME, OPERATIONS, Entry, Operation, Resource, ResourceType
from ottla.security.acls.rules import AclRules, Question
from ottla.security.principal import Principal

audit = logging.getLogger("kafka.authorizer.logger")

VERDICTS_MAX = 50_000
REMEMBERED_NAME_MAX = 249
"""No topic's name is longer: what a client makes up beyond must not fill the memory."""
TOLD_MAX = 1000
_Asked: TypeAlias = tuple[Principal, str, Operation, ResourceType, str]


class Authorizer:
    """The rules, and what they said so far."""

    def __init__(self, config: AuthorizerConfig) -> None:
        self.rules = AclRules(config.super_users, open_by_default=config.allow_everyone_if_no_acl_found)
        self._verdicts: dict[_Asked, bool] = {}

    def put(self, resource: Resource, entries: frozenset[Entry]) -> None:
        """These are the rules of the resource now."""
        if self.rules.of(resource) != entries:
            self.rules.put(resource, entries)
            self._verdicts.clear()

    def may(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """Whether that is allowed."""
        asked = (principal, host, operation, kind, name)
        verdict = self._verdicts.get(asked)
        if verdict is None:
            question = Question(str(principal), as_in_java(host), operation, kind, name)
            verdict = self.rules.decide(question).is_allowed
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            if len(name) <= REMEMBERED_NAME_MAX:
                self._verdicts[asked] = verdict
        return verdict

    def may_any(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there can be a resource of that type to which that is allowed."""
        return self.rules.decide_any(str(principal), as_in_java(host), operation, kind)

    def operations(self, principal: Principal, host: str, kind: ResourceType, name: str) -> int:
        """What is allowed to one resource, as bits."""
        return sum(
            1 << operation
            for operation in OPERATIONS[kind]
            if self.may(principal, host, operation, kind, name)
        )

    def cluster_operations(self, principal: Principal, host: str) -> int:
        """What is allowed to the cluster, as bits; nothing is told to whom may not describe it."""
        if not self.may(principal, host, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            return 0
        return self.operations(principal, host, ResourceType.CLUSTER, CLUSTER_NAME)


def tell(
    principal: Principal,
    host: str,
    operation: Operation,
    resource: Resource,
    api: str,
    *,
    count: int,
    is_allowed: bool,
) -> None:
    """One line of Kafka's audit log."""
    level = logging.DEBUG if is_allowed else logging.INFO
    if audit.isEnabledFor(level):
        audit.log(
            level,
            "Principal = %s is %s Operation = %s from host = %s on resource = %s for request = %s"
            " with resourceRefCount = %d",
            _one_line(str(principal)),
            "Allowed" if is_allowed else "Denied",
            operation.title,
            as_in_java(host),
            _one_line(str(resource)),
            api,
            count,
        )


def _one_line(text: str) -> str:
    """A name that somebody chose must not look like a line of our own, nor fill the disk."""
    if len(text) > TOLD_MAX:
        text = f"{text[:TOLD_MAX]}..."
    return text if text.isprintable() else text.encode("unicode_escape").decode()
