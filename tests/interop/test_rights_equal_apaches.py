"""The authorization matrix asked of an Apache broker and of ours: same rules, questions and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acls.kinds import Entry, Operation, Permission, Resource, ResourceType
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.apis.delete_topics import DeleteTopicState
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.keys import ApiKey
from support.differential.connection import Connection, Outcome
from support.processes.apache_tools import run_main
from support.processes.broker_process import BrokerProcess, wait_all_usable
from support.processes.commands import run_here as run_ottla
from support.running.waiting import wait_until
from support.security.asks import ASKS, GROUP, TOPIC, TRANSACTION, Ask, ask, settings
from support.security.broker import BOB, BOBS_PASSWORD, guarded_broker
from support.security.talk import Talk
from support.zookeeper.chroots import Chroots

pytestmark = [
    pytest.mark.apache,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.full("a thousand questions to two brokers of its own"),
]

BOBS = f"User:{BOB}"
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "log.retention.ms": -1,  # the records of the questions are old
}
OF_THE_MOMENT = {
    "throttle_time_ms", "port", "cluster_id", "topic_id", "producer_id", "producer_epoch", "log_dir",
    "total_bytes", "usable_bytes", "base_offset", "offset", "high_watermark", "last_stable_offset", "records",
    "log_append_time_ms", "timestamp", "end_offset", "member_id", "old_style_offsets", "low_watermark",
    "log_start_offset", "last_timestamp", "producer_id_start", "aborted_transactions", "error_message",
}  # fmt: skip
"""What two brokers that did the same answer differently; texts are those of Java's exceptions in part."""


class Side:
    """One broker: its operator, who is a super user, and bob."""

    def __init__(self, broker: BrokerProcess, plain: int, guarded: int) -> None:
        self.broker = broker
        self.operator = Connection(plain)
        self.bob = Talk(guarded)
        self.plain = plain
        self._guarded = guarded
        self.log_in()

    def log_in(self) -> None:
        self.bob.close()
        self.bob = Talk(self._guarded)
        assert self.bob.log_in(BOB, BOBS_PASSWORD)[1] == 0

    def rules(self, rules: tuple[tuple[Resource, Entry], ...]) -> None:
        """These, and no others."""
        everything = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
        gone = self.operator.call(DeleteAclsRequest(filters=[everything]), 2)
        assert [row.error_code for row in gone.filter_results] == [0]
        if rules:
            made = self.operator.call(
                CreateAclsRequest(creations=[AclCreation(*resource, *entry) for resource, entry in rules]), 2
            )
            assert {row.error_code for row in made.results} == {0}

    def ask(self, question: Ask) -> Any:
        connection = self.bob._connection
        message = question.message()
        said = connection.exchange(connection.framed(message, question.version))
        if isinstance(said, Outcome):
            self.log_in()
            return said.value
        return neutral(msgspec.to_builtins(connection.decoded(message, question.version, said)))

    def close(self) -> None:
        self.operator.close()
        self.bob.close()


def neutral(value: Any) -> Any:
    """The answer without what differs by chance; rows in one order."""
    if isinstance(value, dict):
        return {name: neutral(each) for name, each in value.items() if name not in OF_THE_MOMENT}
    if isinstance(value, list | tuple):
        return sorted(map(neutral, value), key=repr)
    return value


@pytest.fixture(scope="module")
def sides(chroots: Chroots) -> Iterator[dict[str, Side]]:
    brokers: list[BrokerProcess] = []
    found: dict[str, Side] = {}
    try:
        doors = {}
        for kind in ("apache", "ottla"):
            broker, doors[kind] = guarded_broker(kind, 1, chroots.make().connect, **SETTINGS)
            brokers.append(broker)
            broker.launch()
        for broker in brokers:
            wait_all_usable([broker])
            found[broker.kind] = side = Side(broker, doors[broker.kind].plain, doors[broker.kind].s)
            new = CreateTopicsRequest(topics=[CreatableTopic(TOPIC, 1, 1)], timeout_ms=30_000)
            assert side.operator.call(new, 5).topics[0].error_code == 0
            for key, kind in ((GROUP, 0), (TRANSACTION, 1)):
                wait_until(
                    lambda s=side, k=key, t=kind: (
                        s.operator.call(FindCoordinatorRequest(key=k, key_type=t), 3).error_code == 0
                    ),
                    "the coordinator is there",
                    60,
                )
            numbers = next(each for each in ASKS if each.label == "-idempotent")
            wait_until(
                lambda s=side, n=numbers: s.operator.call(n.message(), n.version).error_code == 0,
                "there are producer ids",
                60,
            )
            commit = next(each for each in ASKS if each.key is ApiKey.OFFSET_COMMIT)
            wait_until(
                lambda s=side, c=commit: (
                    s.operator.call(c.message(), c.version).topics[0].partitions[0].error_code == 0
                ),
                "an offset is committed",
                60,
            )
        yield found
    finally:
        for each in found.values():
            each.close()
        for broker in brokers:
            broker.stop()


@pytest.mark.parametrize("question", ASKS, ids=str)
def test_both_refuse_and_allow_the_same(sides: dict[str, Side], question: Ask) -> None:
    differences = []
    for setting in settings(question, BOBS):
        said = {}
        for kind, side in sides.items():
            side.rules(setting.rules)
            said[kind] = side.ask(question)
        if said["apache"] != said["ottla"]:
            differences.append((setting.name, said))
    assert not differences, "\n".join(map(str, differences))


def _on_topic(operation: Operation, permission: Permission = Permission.ALLOW) -> tuple[Resource, Entry]:
    return Resource(ResourceType.TOPIC, TOPIC), Entry(BOBS, "*", operation, permission)


@pytest.mark.parametrize(
    "rules",
    [
        (),
        (_on_topic(Operation.DESCRIBE),),
        (_on_topic(Operation.DELETE), _on_topic(Operation.DESCRIBE, Permission.DENY)),
        (_on_topic(Operation.ALTER), _on_topic(Operation.DELETE, Permission.DENY)),
    ],
    ids=["nothing", "describe", "delete-undescribed", "describe-undeleted"],
)
def test_by_its_id_both_refuse_to_delete_and_tell_the_same(
    sides: dict[str, Side], rules: tuple[tuple[Resource, Entry], ...]
) -> None:
    said = {}
    for kind, side in sides.items():
        side.rules(rules)
        everything = side.operator.call(MetadataRequest(topics=None), 12)
        topic_id = next(row.topic_id for row in everything.topics if row.name == TOPIC)
        question = ask(
            ApiKey.DELETE_TOPICS, 6, topics=lambda i=topic_id: [DeleteTopicState(None, i)], timeout_ms=1000
        )
        said[kind] = side.ask(question)
    assert said["ottla"] == said["apache"]
    assert said["ottla"]["responses"][0]["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


TOOL = "kafka.admin.AclCommand"
COMMANDS = (
    ("--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t1"),
    ("--add", "--allow-principal", "User:a", "--deny-principal", "User:b", "--group", "g", "--topic", "t2"),
    ("--add", "--producer", "--allow-principal", "User:p", "--topic", "pre", "--resource-pattern-type",
     "prefixed", "--idempotent"),
    ("--add", "--consumer", "--allow-principal", "User:c", "--topic", "t3", "--group", "g3"),
    ("--list",),
    ("--list", "--topic", "pre-1", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:b"),
    ("--list", "--cluster"),
    ("--remove", "--force", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t1"),
    ("--remove", "--force", "--topic", "t2"),
    ("--list",),
)  # fmt: skip


def test_our_tool_says_what_apaches_says_and_each_finds_the_others_rules(sides: dict[str, Side]) -> None:
    """Theirs goes to our broker, and ours to theirs."""
    for side in sides.values():
        side.rules(())
    addresses = {kind: f"127.0.0.1:{side.plain}" for kind, side in sides.items()}
    differences = []
    for words in COMMANDS:
        theirs = run_main(TOOL, "--bootstrap-server", addresses["ottla"], *words)
        ours = run_ottla("acls", "--bootstrap-server", addresses["apache"], *words)
        assert theirs.exit_code == ours.exit_code == 0, (theirs, ours)
        if paragraphs(theirs.stdout) != paragraphs(ours.stdout):
            differences.append((words, theirs.stdout, ours.stdout))
    assert not differences, "\n".join(map(str, differences))


def paragraphs(text: str) -> list[list[str]]:
    """Rules and resources stand in no order that counts."""
    parts = text.replace("`\nCurrent", "`\n\nCurrent").split("\n\n")
    return sorted(sorted(line.strip() for line in part.splitlines()) for part in parts)
