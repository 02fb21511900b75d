"""Why somebody may do something or not, and the command that would change it."""

from __future__ import annotations

import pytest

from ottla.insight.access.rights import right_lines
from ottla.security.acls.kinds import Entry, Operation, PatternType, Permission, Resource, ResourceType, Rule
from ottla.security.acls.rules import Question

TOPIC = ResourceType.TOPIC
ASKED = Question("User:a", "(any)", Operation.WRITE, TOPIC, "orders")
NOT_SEEN = "super.users and allow.everyone.if.no.acl.found of the brokers count as well; no client sees them"


def rule(permission: Permission, operation: Operation = Operation.WRITE, host: str = "*") -> Rule:
    return Rule(Resource(TOPIC, "or", PatternType.PREFIXED), Entry("User:*", host, operation, permission))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            [],
            [
                "User:a may not Write Topic orders: no rule allows it",
                "to allow it: ottla acls --add --allow-principal User:a --operation Write --topic orders",
                NOT_SEEN,
            ],
        ),
        (
            [rule(Permission.ALLOW)],
            [
                "User:a may Write Topic orders: a rule allows it",
                "  Topic:PREFIXED:or allows Write to User:* from any host",
                "to forbid it: ottla acls --add --deny-principal User:a --operation Write --topic orders",
            ],
        ),
        (
            [rule(Permission.ALLOW), rule(Permission.DENY, Operation.ALL)],
            [
                "User:a may not Write Topic orders: a rule denies it",
                "  Topic:PREFIXED:or denies All to User:* from any host",
                "to take the rule away: ottla acls --remove --deny-principal 'User:*' --operation All"
                " --topic or --resource-pattern-type prefixed",
                NOT_SEEN,
            ],
        ),
        (
            [rule(Permission.ALLOW, host="10.0.0.1")],
            [
                "User:a may not Write Topic orders: no rule allows it",
                "to allow it: ottla acls --add --allow-principal User:a --operation Write --topic orders",
                NOT_SEEN,
            ],
        ),
    ],
)
def test_the_verdict_comes_with_its_rule_and_what_would_turn_it(
    rules: list[Rule], expected: list[str]
) -> None:
    assert right_lines(rules, ASKED) == expected


def test_names_stand_in_the_command_as_a_shell_takes_them() -> None:
    lines = right_lines([], ASKED._replace(principal="User:CN=a b", name="it's"))
    assert "--allow-principal 'User:CN=a b'" in lines[1]
    assert "--topic 'it'\\''s'" in lines[1]
