"""Rules that cannot be read, that ZooKeeper does not show, or that were perhaps written."""

from __future__ import annotations

from typing import Any

from ottla.broker.access.rule_store import CLOSED
from ottla.security.acls.kinds import Entry, Operation, Permission, Resource, ResourceType
from ottla.security.principal import Principal
from ottla.znodes import codec_acl
from ottla.zookeeper.ops import Children, Create, Failed, GetChildren, GetData, Lost, SetData, ZkCode
from support.bench.node_bench import SESSION, Bench, a_config

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
BOB = Principal("User", "bob")
GUARDED: dict[str, object] = {"authorizer_class_name": AUTHORIZER, "super_users": "User:ANONYMOUS"}
O, T = Operation, ResourceType


def test_what_was_never_read_is_closed_and_not_open() -> None:
    """The rules that nobody can read may be denials."""
    bench = Bench(a_config(authorizer_class_name=AUTHORIZER)).start()
    everything = Resource(T.GROUP, "*")
    everybody = Entry("User:*", "*", O.READ, Permission.ALLOW)
    bench.zk(Create(codec_acl.path(everything), codec_acl.encode([everybody])))
    bench.zk(Create(codec_acl.path(Resource(T.GROUP, "secret")), b'{"version":2}'))

    other = Bench(a_config(authorizer_class_name=AUTHORIZER, broker_id=2), tree=bench.tree)
    other.session = SESSION + 1
    other.start()

    authorizer = other.node.authorizer
    assert authorizer is not None
    may = [authorizer.may(BOB, "10.0.0.7", O.READ, T.GROUP, name) for name in ("secret", "open")]
    assert may == [False, True]
    assert authorizer.rules.of(Resource(T.GROUP, "secret")) == CLOSED


class Refusing(Bench):
    """ZooKeeper does not show what stands below a path."""

    hidden: str | None = None
    loses: type[Any] | None = None

    def answer(self, submitted: Any) -> None:
        operation = submitted.operation
        shows = isinstance(operation, GetData | GetChildren)
        if shows and self.hidden is not None and operation.path.startswith(self.hidden):
            self.zk_log.append(operation)
            self.node.on_zk_result(submitted.token, Failed(ZkCode.NO_AUTH))
        elif self.loses is not None and isinstance(operation, self.loses):
            self.loses = None  # it is done, and the answer is lost
            _, fired = self.tree.apply(operation, self.session, self.clock.wall_ms())
            self.deliver(fired)
            self.node.on_zk_result(submitted.token, Lost(maybe_applied=True))
        else:
            super().answer(submitted)


def test_rules_that_zookeeper_does_not_show_stay_as_they_were() -> None:
    bench = Refusing(a_config(authorizer_class_name=AUTHORIZER)).start()
    group = Resource(T.GROUP, "g")
    denial = Entry("User:bob", "*", O.READ, Permission.DENY)
    bench.zk(Create(codec_acl.path(group), codec_acl.encode([denial])))
    prefix, note = codec_acl.change_note(group)
    bench.zk(Create(prefix, note, sequential=True))
    authorizer = bench.node.authorizer
    assert authorizer is not None
    assert authorizer.rules.of(group) == {denial}

    assert isinstance(bench, Refusing)
    bench.hidden = codec_acl.path(group)
    bench.zk(Create(prefix, note, sequential=True))

    assert authorizer.rules.of(group) == {denial}


def test_a_broker_that_may_not_list_the_rules_lets_nobody_in() -> None:
    bench = Refusing(a_config(authorizer_class_name=AUTHORIZER))
    bench.hidden = f"{codec_acl.LITERAL}/"
    bench.start()
    bench.advance(5_000)
    assert not bench.accepts

    bench.hidden = None
    bench.advance(5_000)
    assert bench.accepts


def test_a_change_whose_answer_was_lost_is_told_to_the_others() -> None:
    bench = Refusing(a_config(**GUARDED))
    bench.start()
    store, group = bench.node.rule_store, Resource(T.GROUP, "g")
    assert store is not None
    denial = Entry("User:bob", "*", O.READ, Permission.DENY)
    bench.zk(Create(codec_acl.path(group), codec_acl.encode([denial._replace(principal="User:eve")])))
    assert isinstance(bench, Refusing)
    bench.loses = SetData

    done: list[str | None] = []
    bench.node.runtime.own.spawn(store.change(group, lambda before: before | {denial}), done.append)
    bench.settle()
    bench.advance(1_000)

    assert done == [None]
    notes = bench.zk(GetChildren(codec_acl.LITERAL_CHANGES))
    assert isinstance(notes, Children)
    assert len(notes.names) == 1


def test_a_note_that_comes_while_others_are_read_is_read_as_well() -> None:
    bench = Bench(a_config(authorizer_class_name=AUTHORIZER)).start()
    entry = Entry("User:bob", "*", O.READ, Permission.ALLOW)
    first, second = (Resource(T.GROUP, name) for name in ("a", "b"))

    def somebody_makes(resource: Resource) -> None:
        bench.zk(Create(codec_acl.path(resource), codec_acl.encode([entry])))
        bench.zk(Create(*codec_acl.change_note(resource), sequential=True))

    def let_zookeeper_answer() -> None:
        held, bench.held = bench.held, []
        for each in held:
            bench.answer(each)
        bench.settle()

    bench.zk_is_held = True
    somebody_makes(first)
    while not any(isinstance(each.operation, GetData) for each in bench.held):
        assert bench.held
        let_zookeeper_answer()
    somebody_makes(second)
    bench.zk_is_held = False
    let_zookeeper_answer()

    authorizer = bench.node.authorizer
    assert authorizer is not None
    assert [authorizer.rules.of(each) for each in (first, second)] == [{entry}, {entry}]
