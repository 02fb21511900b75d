"""Access rules over the wire and in ZooKeeper: made, found, deleted, and followed when others change them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acls.kinds import Entry, Operation, PatternType, Permission, Resource, ResourceType
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.apis.describe_acls import DescribeAclsRequest
from ottla.wire.apis.heartbeat import HeartbeatRequest
from ottla.znodes import codec_acl
from ottla.zookeeper.ops import Create, Data, GetChildren, GetData, SetData
from support.bench.node_bench import Bench, a_config

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
GROUP = Resource(ResourceType.GROUP, "g")
BOB_READS = Entry("User:bob", "*", Operation.READ, Permission.ALLOW)
EVERYBODY_READS = BOB_READS._replace(principal="User:*")


@pytest.fixture
def bench() -> Bench:
    """Everybody is a super user, so that rules can be made."""
    return Bench(a_config(authorizer_class_name=AUTHORIZER, super_users="User:ANONYMOUS")).start()


@pytest.fixture
def closed() -> Bench:
    """Nobody may do anything without a rule."""
    return Bench(a_config(authorizer_class_name=AUTHORIZER)).start()


def creation(resource: Resource, entry: Entry, **changes: Any) -> AclCreation:
    row = AclCreation(
        resource.type, resource.name, resource.pattern, entry.principal, entry.host, entry.operation,
        entry.permission,
    )  # fmt: skip
    for name, value in changes.items():
        setattr(row, name, value)
    return row


def everything(**changes: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        **changes,
    }


def described(bench: Bench) -> list[tuple[str, int, list[str]]]:
    answer = bench.ask(DescribeAclsRequest(**everything()), 3)
    assert answer.error_code == 0
    return [
        (row.resource_name, row.pattern_type, [each.principal for each in row.acls])
        for row in answer.resources
    ]


def may_beat(bench: Bench) -> bool:
    """Whether a stranger may read the group."""
    error = bench.ask(HeartbeatRequest(group_id="g", member_id="m"), 4).error_code
    return bool(error != ErrorCode.GROUP_AUTHORIZATION_FAILED)


def test_rules_are_made_described_and_deleted(bench: Bench) -> None:
    prefixed = Resource(ResourceType.TOPIC, "pre", PatternType.PREFIXED)
    rows = [creation(GROUP, BOB_READS), creation(GROUP, EVERYBODY_READS), creation(prefixed, BOB_READS)]

    answer = bench.ask(CreateAclsRequest(creations=rows), 3)

    assert [(row.error_code, row.error_message) for row in answer.results] == [(0, "")] * 3
    assert described(bench) == [("pre", 4, ["User:bob"]), ("g", 3, ["User:*", "User:bob"])]
    found = bench.zk(GetData("/kafka-acl/Group/g"))
    assert isinstance(found, Data)
    assert codec_acl.decode(found.data, "g") == {BOB_READS, EVERYBODY_READS}
    notes = [bench.zk(GetChildren(path)).names for path in codec_acl.CHANGE_LISTS]
    assert notes == [("acl_changes_0000000000",), ("acl_changes_0000000000",)]

    filters = [DeleteAclsFilter(**everything(principal_filter="User:bob")), DeleteAclsFilter(**everything())]
    deleted = bench.ask(DeleteAclsRequest(filters=filters), 3)

    found_by = [
        sorted((row.resource_name, row.principal) for row in each.matching_acls)
        for each in deleted.filter_results
    ]
    assert found_by == [[("g", "User:bob"), ("pre", "User:bob")], [("g", "User:*")]]
    assert described(bench) == []
    assert bench.zk(GetChildren("/kafka-acl/Group")).names == ()


def test_a_rule_that_is_there_already_is_taken_without_a_note(bench: Bench) -> None:
    for _ in range(2):
        answer = bench.ask(CreateAclsRequest(creations=[creation(GROUP, BOB_READS)]), 3)
        assert answer.results[0].error_code == 0
    assert len(bench.zk(GetChildren(codec_acl.LITERAL_CHANGES)).names) == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"resource_type": 4}, ErrorCode.INVALID_REQUEST),
        ({"resource_name": ""}, ErrorCode.INVALID_REQUEST),
        ({"resource_name": "a/b"}, ErrorCode.INVALID_REQUEST),
        ({"operation": 99}, ErrorCode.INVALID_REQUEST),
        ({"operation": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"resource_pattern_type": 2}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"principal": "bob"}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_row_that_is_no_rule_is_refused_and_the_others_are_taken(
    bench: Bench, changes: dict[str, Any], error: ErrorCode
) -> None:
    rows = [creation(GROUP, EVERYBODY_READS, **changes), creation(GROUP, BOB_READS)]
    answer = bench.ask(CreateAclsRequest(creations=rows), 3)
    assert [row.error_code for row in answer.results] == [error, 0]
    assert described(bench) == [("g", 3, ["User:bob"])]


def test_rules_that_were_there_before_hold_from_the_start(bench: Bench) -> None:
    bench.zk(Create("/kafka-acl/Group/g", codec_acl.encode([EVERYBODY_READS])))
    other = Bench(a_config(authorizer_class_name=AUTHORIZER, broker_id=2), tree=bench.tree)
    other.session = 101
    other.start()
    assert may_beat(other)


def test_a_rule_that_somebody_else_makes_holds_with_its_note(closed: Bench) -> None:
    assert not may_beat(closed)
    prefix, note = codec_acl.change_note(GROUP)
    closed.zk(Create("/kafka-acl/Group/g", codec_acl.encode([EVERYBODY_READS])))
    closed.zk(Create(prefix, note, sequential=True))
    assert may_beat(closed)

    closed.zk(SetData("/kafka-acl/Group/g", codec_acl.encode([BOB_READS]), 0))
    closed.zk(Create(prefix, note, sequential=True))
    assert not may_beat(closed)


def test_what_was_missed_without_a_session_is_read_in_the_next(closed: Bench) -> None:
    assert not may_beat(closed)
    closed.tree.end_session(closed.session)
    closed.zk(Create("/kafka-acl/Group/g", codec_acl.encode([EVERYBODY_READS])))
    closed.tree.open_session(closed.session)
    closed.expire_session(102)
    assert may_beat(closed)


def test_rules_that_nobody_can_read_change_nothing_and_are_told(
    closed: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    prefix, note = codec_acl.change_note(GROUP)
    closed.zk(Create("/kafka-acl/Group/g", codec_acl.encode([EVERYBODY_READS])))
    closed.zk(Create(prefix, note, sequential=True))
    closed.zk(SetData("/kafka-acl/Group/g", b"{}", 0))
    closed.zk(Create(prefix, note, sequential=True))
    assert may_beat(closed)
    assert "access rules cannot be read path=/kafka-acl/Group/g" in caplog.text


def test_refusals_stand_in_the_audit_log_in_kafkas_words(
    closed: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        closed.ask(HeartbeatRequest(group_id="g\nx", member_id="m"), 4)
    assert caplog.messages == [
        "Principal = User:ANONYMOUS is Denied Operation = Read from host = 10.0.0.7 on resource ="
        " Group:LITERAL:g\\nx for request = Heartbeat with resourceRefCount = 1"
    ]


def test_a_broker_without_an_authorizer_keeps_no_rules() -> None:
    open_ = Bench().start()
    assert may_beat(open_)
    assert open_.ask(DescribeAclsRequest(**everything()), 3).error_code == ErrorCode.SECURITY_DISABLED
