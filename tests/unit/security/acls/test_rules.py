"""What access rules decide: Kafka's order of super users, denials and permissions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import (
    EVERYBODY,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    Rule,
)
from ottla.security.acls.rules import AclRules, Question, Reason

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALLOW, DENY = Permission.ALLOW, Permission.DENY
BOB, HERE = "User:bob", "10.0.0.1"


def rules_of(*rules: tuple[Resource, Entry], **options: bool) -> AclRules:
    made = AclRules(["User:root"], open_by_default=options.get("open_by_default", False))
    for resource, entry in rules:
        made.put(resource, made.of(resource) | {entry})
    return made


def entry(operation: Operation, permission: Permission = ALLOW, who: str = BOB, host: str = "*") -> Entry:
    return Entry(who, host, operation, permission)


def literal(name: str, kind: ResourceType = TOPIC) -> Resource:
    return Resource(kind, name)


def prefix(name: str, kind: ResourceType = TOPIC) -> Resource:
    return Resource(kind, name, PatternType.PREFIXED)


def reason(
    rules: AclRules, operation: Operation = Operation.READ, name: str = "abc", who: str = BOB
) -> Reason:
    return rules.decide(Question(who, HERE, operation, TOPIC, name)).reason


def test_without_a_rule_nobody_but_a_super_user_gets_in() -> None:
    assert reason(rules_of()) is Reason.NOT_ALLOWED
    assert reason(rules_of(), who="User:root") is Reason.SUPER_USER


def test_an_open_cluster_closes_a_resource_with_its_first_rule_whoever_that_is_about() -> None:
    assert reason(rules_of(open_by_default=True)) is Reason.NO_RULES
    closed = rules_of((literal("abc"), entry(Operation.READ, who="User:eve")), open_by_default=True)
    assert reason(closed) is Reason.NOT_ALLOWED
    assert reason(closed, name="other") is Reason.NO_RULES


def test_a_denial_wins_over_every_permission_and_not_over_a_super_user() -> None:
    rules = rules_of(
        (literal("*"), entry(Operation.ALL, DENY, EVERYBODY)), (literal("abc"), entry(Operation.READ))
    )
    assert reason(rules) is Reason.DENIED
    assert reason(rules, who="User:root") is Reason.SUPER_USER


@pytest.mark.parametrize(
    ("name", "expected"), [("a", Reason.NOT_ALLOWED), ("ab", Reason.ALLOWED), ("abc", Reason.ALLOWED)]
)
def test_a_prefix_reaches_what_begins_with_it(name: str, expected: Reason) -> None:
    assert reason(rules_of((prefix("ab"), entry(Operation.READ))), name=name) is expected


def test_a_prefixed_star_is_no_wildcard() -> None:
    rules = rules_of((prefix("*"), entry(Operation.READ)))
    assert reason(rules) is Reason.NOT_ALLOWED
    assert reason(rules, name="*x") is Reason.ALLOWED


@pytest.mark.parametrize("given_", list(Operation)[2:])
def test_permissions_imply_describe_and_describe_configs_and_denials_imply_nothing(given_: Operation) -> None:
    implied = {
        Operation.READ: {Operation.DESCRIBE},
        Operation.WRITE: {Operation.DESCRIBE},
        Operation.DELETE: {Operation.DESCRIBE},
        Operation.ALTER: {Operation.DESCRIBE},
        Operation.ALTER_CONFIGS: {Operation.DESCRIBE_CONFIGS},
        Operation.ALL: set(Operation) - {Operation.UNKNOWN, Operation.ANY},
    }.get(given_, set())
    allowing = rules_of((literal("abc"), entry(given_)))
    denying = rules_of((literal("abc"), entry(given_, DENY)), (literal("abc"), entry(Operation.ALL)))
    for asked in list(Operation)[2:]:
        assert (reason(allowing, asked) is Reason.ALLOWED) == (asked in {given_, *implied}), asked
        is_denied = asked is given_ or given_ is Operation.ALL
        assert (reason(denying, asked) is Reason.DENIED) == is_denied, asked


def test_a_rule_holds_for_its_principal_and_its_host_alone() -> None:
    here = rules_of((literal("abc"), entry(Operation.READ, host=HERE)))
    assert reason(here) is Reason.ALLOWED
    assert reason(rules_of((literal("abc"), entry(Operation.READ, host="10.0.0.2")))) is Reason.NOT_ALLOWED
    assert reason(rules_of((literal("abc"), entry(Operation.READ, who="Group:bob")))) is Reason.NOT_ALLOWED
    assert reason(rules_of((literal("abc"), entry(Operation.READ, who=EVERYBODY)))) is Reason.ALLOWED


def test_rules_that_are_taken_away_decide_no_more() -> None:
    rules = rules_of((prefix("a"), entry(Operation.READ)), (prefix("b"), entry(Operation.READ)))
    rules.put(prefix("a"), ())
    assert reason(rules) is Reason.NOT_ALLOWED
    assert reason(rules, name="bcd") is Reason.ALLOWED


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([(literal("a"), ALLOW)], True),
        ([(literal("a"), ALLOW), (literal("a"), DENY)], False),
        ([(literal("a"), ALLOW), (literal("b"), DENY)], True),
        ([(literal("ab"), ALLOW), (prefix("a"), DENY)], False),
        ([(prefix("ab"), ALLOW), (prefix("a"), DENY)], False),
        ([(prefix("a"), ALLOW), (prefix("ab"), DENY)], True),
        ([(prefix("a"), ALLOW), (literal("a"), DENY)], True),
        ([(literal("*"), ALLOW), (prefix("a"), DENY)], True),
        ([(literal("*"), ALLOW), (literal("*"), DENY)], False),
        ([(literal("a", GROUP), ALLOW)], False),
    ],
)
def test_a_right_on_any_topic_is_one_that_denials_leave_something_of(
    rules: list[tuple[Resource, Permission]], expected: bool
) -> None:
    made = rules_of(*((resource, entry(Operation.WRITE, permission)) for resource, permission in rules))
    assert made.decide_any(BOB, HERE, Operation.WRITE, TOPIC) is expected
    assert made.decide_any("User:root", HERE, Operation.WRITE, TOPIC)


# ---- the same, decided slowly ---------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
RULES = st.builds(
    Rule,
    st.builds(
        Resource,
        st.sampled_from([TOPIC, GROUP]),
        NAMES,
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        Entry,
        st.sampled_from([BOB, "User:eve", EVERYBODY]),
        st.sampled_from(["*", HERE, "10.0.0.2"]),
        st.sampled_from(list(Operation)[2:]),
        st.sampled_from([ALLOW, DENY]),
    ),
)


def slowly(rules: list[Rule], asked: Question, *, is_open: bool) -> bool:
    """Kafka's rules in the fewest words, without any index."""
    named = [
        rule
        for rule in rules
        if rule.resource.type is asked.type
        and (
            asked.name.startswith(rule.resource.name)
            if rule.resource.pattern is PatternType.PREFIXED
            else rule.resource.name in (asked.name, "*")
        )
    ]
    if not named:
        return is_open
    mine = [
        rule.entry
        for rule in named
        if rule.entry.principal in (asked.principal, EVERYBODY) and rule.entry.host in (asked.host, "*")
    ]
    said = {(each.permission, each.operation) for each in mine}
    if said & {(DENY, asked.operation), (DENY, Operation.ALL)}:
        return False
    enough = [asked.operation, Operation.ALL]
    if asked.operation is Operation.DESCRIBE:
        enough += [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER]
    if asked.operation is Operation.DESCRIBE_CONFIGS:
        enough += [Operation.ALTER_CONFIGS]
    return any((ALLOW, each) in said for each in enough)


@given(
    st.lists(RULES, max_size=8),
    st.lists(RULES, max_size=2),
    st.sampled_from(list(Operation)[2:]),
    NAMES,
    st.booleans(),
)
def test_the_index_decides_as_a_search_through_all_rules_does(
    rules: list[Rule], gone: list[Rule], operation: Operation, name: str, is_open: bool
) -> None:
    made = rules_of(*rules, *gone, open_by_default=is_open)
    for rule in gone:
        if rule not in rules:
            made.put(rule.resource, made.of(rule.resource) - {rule.entry})
    asked = Question(BOB, HERE, operation, TOPIC, name)
    assert made.decide(asked).is_allowed == slowly(rules, asked, is_open=is_open)
    assert set(made) == set(rules)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (AclFilter(), {"abc", "*", "ab-"}),
        (AclFilter(TOPIC, "abc", PatternType.LITERAL), {"abc"}),
        (AclFilter(TOPIC, "abc", PatternType.MATCH), {"abc", "*", "ab-"}),
        (AclFilter(TOPIC, "abc", PatternType.ANY), {"abc"}),
        (AclFilter(TOPIC, None, PatternType.PREFIXED), {"ab-"}),
        (AclFilter(TOPIC, "ab", PatternType.PREFIXED), {"ab-"}),
        (AclFilter(GROUP), set()),
        (AclFilter(principal="User:eve"), set()),
        (AclFilter(host="*", operation=Operation.READ, permission=ALLOW), {"abc", "*", "ab-"}),
        (AclFilter(permission=DENY), set()),
    ],
)
def test_a_filter_finds_what_kafkas_finds(wanted: AclFilter, expected: set[str]) -> None:
    resources = {"abc": literal("abc"), "*": literal("*"), "ab-": prefix("ab")}
    found = {label for label, each in resources.items() if wanted.matches(Rule(each, entry(Operation.READ)))}
    assert found == expected
