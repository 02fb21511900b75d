"""The flags of ``ottla acls`` as rules and filters."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli.shared.refusal import UsageRefused
from ottla.cli.tools.acls.wanted import Wanted
from ottla.security.acls.kinds import Operation, PatternType, Permission, ResourceType

NOTHING: dict[str, Any] = {
    "topics": [],
    "groups": [],
    "transactional_ids": [],
    "tokens": [],
    "users": [],
    "is_cluster": False,
    "pattern": "literal",
    "operations": ["All"],
    "allowed": ([], []),
    "denied": ([], []),
    "is_producer": False,
    "is_consumer": False,
    "is_idempotent": False,
}
BOB = (["User:bob"], [])


def wanted(**flags: Any) -> Wanted:
    return Wanted(**{**NOTHING, **flags})


def rights(made: Wanted) -> dict[str, list[Operation]]:
    return {
        f"{resource.type.title} {resource.name}": [entry.operation for entry in entries]
        for resource, entries in made.rules().items()
    }


def test_a_producer_and_a_consumer_get_what_kafkas_tool_gives_them() -> None:
    made = wanted(topics=["t"], groups=["g"], transactional_ids=["x"], allowed=BOB, is_producer=True)
    assert rights(made) == {
        "Topic t": [Operation.WRITE, Operation.DESCRIBE, Operation.CREATE],
        "TransactionalId x": [Operation.WRITE, Operation.DESCRIBE],
    }
    assert rights(wanted(topics=["t"], groups=["g"], allowed=BOB, is_consumer=True)) == {
        "Topic t": [Operation.READ, Operation.DESCRIBE],
        "Group g": [Operation.READ],
    }
    idempotent = wanted(topics=["t"], allowed=BOB, is_producer=True, is_idempotent=True)
    assert rights(idempotent)["Cluster kafka-cluster"] == [Operation.IDEMPOTENT_WRITE]


def test_each_principal_has_each_operation_from_each_host() -> None:
    made = wanted(
        topics=["t"], operations=["read", "Alter_Configs"],
        allowed=(["User:bob"], ["h1", "h2"]), denied=(["User:eve"], []), pattern="prefixed",
    )  # fmt: skip
    ((resource, entries),) = made.rules().items()
    assert (resource.type, resource.pattern) == (ResourceType.TOPIC, PatternType.PREFIXED)
    assert [(entry.principal, entry.host, entry.operation, entry.permission) for entry in entries] == [
        (who, host, operation, permission)
        for operation in (Operation.READ, Operation.ALTER_CONFIGS)
        for who, host, permission in (
            ("User:bob", "h1", Permission.ALLOW),
            ("User:bob", "h2", Permission.ALLOW),
            ("User:eve", "*", Permission.DENY),
        )
    ]


def test_without_a_principal_all_rules_of_a_resource_are_removed_and_of_no_resource_none() -> None:
    (every,) = wanted(topics=["t"]).removed()
    assert (every.name, every.principal, every.operation) == ("t", None, Operation.ANY)
    with pytest.raises(UsageRefused, match="say what"):
        wanted().removed()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"topics": ["t"]}, "say whom"),
        ({"allowed": BOB}, "say what"),
        ({"topics": ["t"], "allowed": BOB, "pattern": "match"}, "literal or prefixed"),
        ({"topics": ["t"], "allowed": BOB, "pattern": "regex"}, "no pattern type"),
        ({"topics": ["t"], "allowed": (["bob"], [])}, "write it as User:bob"),
        ({"topics": ["t"], "allowed": BOB, "operations": ["ClusterAction"]}, "no operation on a Topic"),
    ],
)
def test_what_makes_no_rule_is_refused_with_the_reason(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageRefused, match=words):
        wanted(**flags).rules()
