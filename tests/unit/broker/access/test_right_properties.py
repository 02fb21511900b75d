"""Rules change while two clients work: nobody gets what he has no right to, and nobody who has a right is
refused. What is right is said by the few lines of ``World.may`` over the rules that stand in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from ottla.broker.access.access import Access
from ottla.broker.access.authorizer import Authorizer
from ottla.broker.clients.fetch_context import FetchContext
from ottla.model.errors import ErrorCode
from ottla.security.acls.kinds import Entry, Operation, PatternType, Permission, Resource, ResourceType
from ottla.security.acls.rules import AclRules
from ottla.security.principal import Principal
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.apis.fetch import FetchResponse
from ottla.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.znodes import codec_acl
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, Failed, SetData
from support.bench.led_broker import ME, TOPIC, LedBroker, a_batch
from support.bench.node_bench import a_config

GROUP = "g-1"
STEPS = 120
NAMES = {ResourceType.TOPIC: (TOPIC, "*", TOPIC[:2], "z"), ResourceType.GROUP: (GROUP, "*", "g", "h")}
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL)
HOSTS = {"bob": "10.0.0.7", "alice": "10.0.0.8"}
GIVES_DESCRIBE = {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE}
WAIT_MS = 100


class World:
    """A broker, two clients, and somebody who changes the rules now here, now at another broker."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules: dict[Resource, set[Entry]] = {}
        self.led = LedBroker(
            a_config(
                authorizer_class_name="kafka.security.authorizer.AclAuthorizer", super_users="User:ANONYMOUS"
            )
        )
        self.led.lead(isr=(ME,))
        self.led.produce_now(a_batch("first"))
        self.sessions = dict.fromkeys(HOSTS, (0, 0))
        self.connections = {name: self.connect(name) for name in HOSTS}
        self.parked: list[tuple[str, int]] = []
        self.answers: list[bool] = []
        """Of what a right was needed for: whether it was granted."""

    def connect(self, name: str) -> int:
        connection = self.led.connect()
        self.led.node.on_client_lost(connection)
        self.led.node.on_client_connected(connection, "PLAINTEXT", HOSTS[name], Principal("User", name))
        return connection

    def may(self, name: str, operation: Operation, kind: ResourceType, what: str) -> bool:
        def covers(resource: Resource) -> bool:
            if resource.type is not kind:
                return False
            if resource.pattern is PatternType.PREFIXED:
                return what.startswith(resource.name)
            return resource.name in (what, "*")

        ours = [
            entry
            for resource, entries in self.rules.items()
            for entry in entries
            if covers(resource)
            and entry.principal in (f"User:{name}", "User:*")
            and entry.host in (HOSTS[name], "*")
        ]
        gives = (GIVES_DESCRIBE if operation is Operation.DESCRIBE else {operation}) | {Operation.ALL}
        if any(e.permission is Permission.DENY and e.operation in (operation, Operation.ALL) for e in ours):
            return False
        return any(e.permission is Permission.ALLOW and e.operation in gives for e in ours)

    def judge(self, *, is_granted: bool, name: str, operation: Operation, what: str) -> None:
        kind = ResourceType.GROUP if what == GROUP else ResourceType.TOPIC
        assert is_granted == self.may(name, operation, kind, what), (name, operation, what, self.rules)
        self.answers.append(is_granted)

    # ---- what happens

    def step(self) -> None:
        name = self.random.choice(list(HOSTS))
        steps: list[Callable[[str], None]] = [
            self.change_elsewhere, self.change_here, self.produce, self.fetch, self.fetch_in_session,
            self.park, self.look, self.beat,
        ]  # fmt: skip
        self.random.choice(steps)(name)
        if self.random.random() < 0.2:
            self.led.advance(WAIT_MS)
            self.take_parked()

    def another_rule(self) -> tuple[Resource, Entry, bool]:
        """A rule that is there, to be taken away, or a new one."""
        known = [(resource, entry) for resource, entries in self.rules.items() for entry in sorted(entries)]
        if known and self.random.random() < 0.45:
            denials = [each for each in known if each[1].permission is Permission.DENY]
            return *self.random.choice(denials or known), False
        kind = self.random.choice(list(NAMES))
        pattern = self.random.choice((PatternType.LITERAL, PatternType.PREFIXED))
        return (
            Resource(kind, self.random.choice(NAMES[kind]), pattern),
            Entry(
                self.random.choice(("User:bob", "User:alice", "User:*")),
                self.random.choice(("*", "*", *HOSTS.values())),
                self.random.choice(OPERATIONS),
                self.random.choice((Permission.DENY, *[Permission.ALLOW] * 5)),
            ),
            True,
        )

    def note_change(self, resource: Resource, entry: Entry, *, is_new: bool) -> None:
        entries = self.rules.setdefault(resource, set())
        (entries.add if is_new else entries.discard)(entry)
        if not entries:
            del self.rules[resource]

    def change_elsewhere(self, _: str) -> None:
        resource, entry, is_new = self.another_rule()
        self.note_change(resource, entry, is_new=is_new)
        path, zk = codec_acl.path(resource), self.led.zk
        if resource not in self.rules:
            zk(Delete(path, ANY_VERSION))
        else:
            data = codec_acl.encode(self.rules[resource])
            if isinstance(zk(SetData(path, data, ANY_VERSION)), Failed):
                zk(Create(path, data))
        zk(Create(*codec_acl.change_note(resource), sequential=True))

    def change_here(self, _: str) -> None:
        resource, entry, is_new = self.another_rule()
        self.note_change(resource, entry, is_new=is_new)
        message: Any = DeleteAclsRequest(filters=[DeleteAclsFilter(*resource, *entry)])
        if is_new:
            message = CreateAclsRequest(creations=[AclCreation(*resource, *entry)])
        self.led.ask(message, 3)

    def produce(self, name: str) -> None:
        end = self.led.log.end_offset
        self.led.produce(a_batch("x"), connection=self.connections[name])
        answer = self.led.produced(self.connections[name])
        assert answer is not None
        assert answer.error_code in (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert (self.led.log.end_offset > end) is (answer.error_code == 0)
        self.judge(is_granted=answer.error_code == 0, name=name, operation=Operation.WRITE, what=TOPIC)

    def fetch(self, name: str) -> None:
        self.led.fetch(0, connection=self.connections[name])
        self.took_records(name, self.led.fetched(self.connections[name]))

    def fetch_in_session(self, name: str) -> None:
        """The same session all the time: what is not told in it is as before."""
        number, epoch = self.sessions[name]
        self.led.fetch(
            0,
            connection=self.connections[name],
            session=(number, epoch),
            partitions=(0,) if epoch == 0 else (),
        )
        answer = self.led.fetched(self.connections[name])
        assert answer is not None
        assert answer.error_code == 0
        self.sessions[name] = (answer.session_id, epoch + 1)
        self.took_records(name, answer)

    def took_records(self, name: str, answer: FetchResponse | None) -> None:
        """There are records, so that who may read gets some."""
        assert answer is not None
        rows = [row for topic in answer.responses for row in topic.partitions]
        self.judge(
            is_granted=any(row.records for row in rows), name=name, operation=Operation.READ, what=TOPIC
        )
        assert all(row.records or row.high_watermark == -1 for row in rows), "nothing else is told"

    def park(self, name: str) -> None:
        connection = self.connect(name)
        self.led.fetch(self.led.log.end_offset, connection=connection, max_wait_ms=WAIT_MS, min_bytes=10_000)
        self.parked.append((name, connection))

    def take_parked(self) -> None:
        """Answered just now: by the rules of now, not of when they were asked."""
        for name, connection in self.parked:
            answer = self.led.fetched(connection)
            assert answer is not None
            row = answer.responses[0].partitions[0]
            is_granted = row.error_code == 0
            assert is_granted or not row.records
            self.judge(is_granted=is_granted, name=name, operation=Operation.READ, what=TOPIC)
        self.parked.clear()

    def look(self, name: str) -> None:
        question = MetadataRequest(topics=self.random.choice([None, [MetadataRequestTopic(name=TOPIC)]]))
        self.led.send(self.connections[name], question, 12)
        (answer,) = self.led.take_answers(self.connections[name], MetadataResponse, 12)
        told = any(row.error_code == 0 and row.name == TOPIC for row in answer.topics)
        self.judge(is_granted=told, name=name, operation=Operation.DESCRIBE, what=TOPIC)

    def beat(self, name: str) -> None:
        self.led.send(self.connections[name], HeartbeatRequest(group_id=GROUP, member_id="m"), 4)
        (answer,) = self.led.take_answers(self.connections[name], HeartbeatResponse, 4)
        is_granted = answer.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED
        self.judge(is_granted=is_granted, name=name, operation=Operation.READ, what=GROUP)


def play(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    return world


SEEDS = range(12)


def test_rights_decide_and_nothing_else() -> None:
    answers = [granted for seed in SEEDS for granted in play(seed).answers]
    share = sum(answers) / len(answers)
    assert 0.1 < share < 0.9, f"{share:.0%} granted: the rules say too little"


def stale_verdicts(patch: pytest.MonkeyPatch) -> None:
    """What was decided once holds for ever."""
    patch.setattr(Authorizer, "put", lambda self, resource, entries: self.rules.put(resource, entries))


def parked_are_trusted(patch: pytest.MonkeyPatch) -> None:
    """A fetch that waits is looked at with the rights of its beginning."""
    original, seen = FetchContext.is_forbidden, cast(dict[Any, bool], {})

    def is_forbidden(self: FetchContext, entry: Any, version: int, access: Access) -> bool:
        if access not in seen:
            seen[access] = original(self, entry, version, access)
        return seen[access]

    patch.setattr(FetchContext, "is_forbidden", is_forbidden)


def prefixes_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    """Notes of other brokers about prefixes are overlooked."""
    patch.setattr(codec_acl, "CHANGE_LISTS", (codec_acl.LITERAL_CHANGES,))


def a_host_is_any_host(patch: pytest.MonkeyPatch) -> None:
    original = AclRules.decide
    patch.setattr(AclRules, "decide", lambda self, asked: original(self, asked._replace(host="10.0.0.7")))


def permissions_beat_denials(patch: pytest.MonkeyPatch) -> None:
    original = AclRules._find

    def find(self: AclRules, candidates: Any, question: Any, permission: Any, operations: Any) -> Any:
        if permission is Permission.DENY and original(
            self, candidates, question, Permission.ALLOW, operations
        ):
            return None
        return original(self, candidates, question, permission, operations)

    patch.setattr(AclRules, "_find", find)


@pytest.mark.parametrize(
    "plant",
    [
        stale_verdicts,
        parked_are_trusted,
        prefixes_are_not_followed,
        a_host_is_any_host,
        permissions_beat_denials,
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="<Operation"):
        any(play(seed) is None for seed in SEEDS)
