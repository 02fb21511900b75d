"""Access rules in one ZooKeeper: the same bytes from both kinds of brokers, and each obeys the other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

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
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.apis.describe_acls import DescribeAclsRequest
from ottla.wire.apis.describe_groups import DescribeGroupsRequest
from ottla.znodes import codec_acl
from support.differential.connection import Connection
from support.processes.apache_tools import run_main
from support.processes.broker_process import BrokerProcess, wait_all_usable
from support.processes.commands import run_here as run_ottla
from support.running.waiting import wait_until
from support.security.broker import BOB, BOBS_PASSWORD, Doors, guarded_broker
from support.security.talk import Talk
from support.zookeeper.chroots import Chroots

pytestmark = [
    pytest.mark.apache,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.full("a cluster of both kinds of its own"),
]

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}
GROUP_REFUSED = 30
TOOL = "kafka.admin.AclCommand"
TYPES = list(ResourceType)[2:]
PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
KINDS = ("apache", "ottla")


@pytest.fixture(scope="module")
def mixed(chroots: Chroots) -> Iterator[dict[str, tuple[BrokerProcess, Doors]]]:
    """One broker of each kind in one cluster; whoever does not log in is a super user."""
    connect = chroots.make().connect
    both = {kind: guarded_broker(kind, number, connect, **SETTINGS) for number, kind in enumerate(KINDS, 1)}
    try:
        for broker, _ in both.values():
            broker.launch()
        wait_all_usable([broker for broker, _ in both.values()])
        yield both
    finally:
        for broker, _ in both.values():
            broker.stop()


@pytest.fixture
def operators(mixed: dict[str, tuple[BrokerProcess, Doors]]) -> Iterator[dict[str, Connection]]:
    """A super user's connection to each; there are no rules yet."""
    found = {kind: Connection(doors.plain) for kind, (_, doors) in mixed.items()}
    clear(found)
    yield found
    for connection in found.values():
        connection.close()


@pytest.fixture
def bobs(mixed: dict[str, tuple[BrokerProcess, Doors]]) -> Iterator[dict[str, Talk]]:
    found = {kind: Talk(doors.s) for kind, (_, doors) in mixed.items()}
    for talk in found.values():
        assert talk.log_in(BOB, BOBS_PASSWORD)[1] == 0
    yield found
    for talk in found.values():
        talk.close()


@pytest.fixture
def zookeeper(mixed: dict[str, tuple[BrokerProcess, Doors]]) -> Iterator[KazooClient]:
    client = KazooClient(hosts=mixed["ottla"][1].connect)
    client.start(timeout=15)
    yield client
    client.stop()
    client.close()


def clear(operators: dict[str, Connection]) -> None:
    """No broker knows a rule any more."""
    everything = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
    for connection in operators.values():
        connection.call(DeleteAclsRequest(filters=[everything]), 2)
    for kind, connection in operators.items():
        wait_until(lambda c=connection: rules_at(c) == set(), f"{kind} knows no rule")


def rules_at(connection: Connection) -> set[Rule]:
    question = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    answer = connection.call(question, 2)
    assert answer.error_code == 0
    return {
        Rule(
            Resource(ResourceType(row.resource_type), row.resource_name, PatternType(row.pattern_type)),
            Entry(each.principal, each.host, Operation(each.operation), Permission(each.permission_type)),
        )
        for row in answer.resources
        for each in row.acls
    }


def one_rule_each() -> list[Rule]:
    """Every type of resource by both patterns, every operation, both permissions, odd names."""
    rules = []
    operations = list(Operation)[2:]
    for place, kind in enumerate(TYPES):
        for pattern in PATTERNS:
            name = CLUSTER_NAME if kind is ResourceType.CLUSTER else f"n {place}ü*.%"
            resource = Resource(kind, name, pattern)
            for operation in operations[place::3]:
                odd = Entry('User:CN=a\\, "b",OU=ü', "0:0:0:0:0:0:0:1", operation, Permission.DENY)
                rules.append(Rule(resource, odd))
                if pattern is PatternType.PREFIXED:
                    break
            if pattern is PatternType.PREFIXED:
                rules.append(Rule(resource, Entry("User:*", "*", Operation.ALL, Permission.ALLOW)))
    return rules


def make(connection: Connection, rules: list[Rule]) -> None:
    rows = [AclCreation(*rule.resource, *rule.entry) for rule in rules]
    answer = connection.call(CreateAclsRequest(creations=rows), 2)
    assert {row.error_code for row in answer.results} == {0}


def znodes(zookeeper: KazooClient) -> dict[str, bytes]:
    """What stands under the rules, and the last note of each list, under a name without its number."""
    found = {}
    for kind in TYPES:
        for pattern in PATTERNS:
            parent = codec_acl.parent(kind, pattern)
            for name in zookeeper.get_children(parent):
                found[f"{parent}/{name}"] = zookeeper.get(f"{parent}/{name}")[0]
    for changes in codec_acl.CHANGE_LISTS:
        for name in sorted(zookeeper.get_children(changes))[-1:]:
            found[f"{changes}/{name.rstrip('0123456789')}"] = zookeeper.get(f"{changes}/{name}")[0]
    return found


def in_one_order(data: bytes) -> list[bytes]:
    """The entries of a node, whose order is that of a hash table at Apache's; their bytes stay."""
    begin, middle, end = data.partition(b'"acls":[')
    entries, bracket, rest = end.rpartition(b"]")
    return [begin + middle, *sorted(entries.replace(b"},{", b"}\n{").split(b"\n")), bracket + rest]


def test_both_kinds_write_the_same_bytes(operators: dict[str, Connection], zookeeper: KazooClient) -> None:
    rules = one_rule_each()
    written = {}
    for kind in KINDS:
        for rule in rules:  # one at a time: the last note then says the same
            make(operators[kind], [rule])
        written[kind] = {path: in_one_order(data) for path, data in znodes(zookeeper).items()}
        clear(operators)
    assert len(written["apache"]) == len(TYPES) * len(PATTERNS) + len(codec_acl.CHANGE_LISTS)
    assert written["ottla"] == written["apache"]


def test_a_node_of_one_rule_is_the_same_to_the_byte(
    operators: dict[str, Connection], zookeeper: KazooClient
) -> None:
    rule = Rule(
        Resource(ResourceType.TRANSACTIONAL_ID, "t"),
        Entry("User:bob", "*", Operation.IDEMPOTENT_WRITE, Permission.ALLOW),
    )
    said = []
    for kind in KINDS:
        make(operators[kind], [rule])
        said.append(zookeeper.get(codec_acl.path(rule.resource))[0])
        clear(operators)
    assert said[0] == said[1]
    assert json.loads(said[0])["version"] == 1


def may_describe(talk: Talk, group: str) -> bool:
    connection: Any = talk._connection
    message = DescribeGroupsRequest(groups=(group,))
    answer = connection.decoded(message, 5, connection.exchange(connection.framed(message, 5)))
    return bool(answer.groups[0].error_code != GROUP_REFUSED)


@pytest.mark.parametrize("maker", KINDS)
@pytest.mark.parametrize("pattern", ["literal", "prefixed"])
def test_rules_made_at_one_kind_are_obeyed_by_the_other(
    mixed: dict[str, tuple[BrokerProcess, Doors]],
    operators: dict[str, Connection],
    bobs: dict[str, Talk],
    maker: str,
    pattern: str,
) -> None:
    """Each with its own tool; allowed, then denied on top, then allowed again, then nothing."""
    address = f"127.0.0.1:{mixed[maker][1].plain}"

    def tool(*words: str) -> None:
        run, name = (run_main, TOOL) if maker == "apache" else (run_ottla, "acls")
        ran = run(
            name, "--bootstrap-server", address, *words, "--operation", "Describe", "--group", "gr",
            "--resource-pattern-type", pattern,
        )  # fmt: skip
        assert ran.exit_code == 0, ran

    def all_say(is_allowed: bool) -> None:
        group = "gr" if pattern == "literal" else "group"
        for kind, talk in bobs.items():
            wait_until(
                lambda t=talk: may_describe(t, group) is is_allowed, f"{kind} says {is_allowed} after {maker}"
            )

    all_say(is_allowed=False)
    tool("--add", "--allow-principal", f"User:{BOB}")
    all_say(is_allowed=True)
    tool("--add", "--deny-principal", f"User:{BOB}")
    all_say(is_allowed=False)
    tool("--remove", "--force", "--deny-principal", f"User:{BOB}")
    all_say(is_allowed=True)
    tool("--remove", "--force", "--allow-principal", f"User:{BOB}")
    all_say(is_allowed=False)
    assert rules_at(operators["apache"]) == rules_at(operators["ottla"]) == set()
