"""Requests to a coordinator that nobody sane sends: they leave nothing behind, and nobody waits for them."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.headers import decode_response, frame_request
from support.bench.led_broker import TOPIC
from unit.broker.coordinating.test_moves import GROUP, LOAD_MS, Coordinator


def a_coordinator() -> Coordinator:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    return broker


def left_behind(broker: Coordinator) -> tuple[int, int]:
    """Commits that never end, and requests that are never answered."""
    host = broker.node.group_coordinator
    return sum(len(shard.writes) for shard in host.serving()), len(host._requests)


def a_commit(group: str = GROUP, **settings: Any) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    return OffsetCommitRequest(group_id=group, topics=topics, **settings)


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**62, 0, -(2**63)])
def test_an_offset_may_be_kept_for_ever_and_longer(retention_ms: int) -> None:
    broker = a_coordinator()

    answer = broker.ask(a_commit(retention_time_ms=retention_ms), 2)

    assert answer.topics[0].partitions[0].error_code == 0
    assert left_behind(broker) == (0, 0)
    assert broker.committed() == 5


def test_a_group_whose_name_is_no_utf8_and_grows_beyond_every_record_is_refused() -> None:
    broker = a_coordinator()
    length = 20_000
    parts = frame_request(a_commit(group="a" * length), 9, 1, "client")
    frame = b"".join(bytes(part) for part in parts)[4:].replace(b"a" * length, b"\xff" * length)
    connection = broker.connect()

    broker.node.on_request(connection, memoryview(bytearray(frame)))
    broker.settle()

    [answer] = broker.take_answers(connection, OffsetCommitResponse, 9)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
    assert left_behind(broker) == (0, 0)


def test_a_member_whose_id_fits_into_no_answer_does_not_keep_the_others_from_theirs() -> None:
    broker = a_coordinator()
    odd = broker.connect()
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        group_instance_id="x" * 32_767,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    broker.send(odd, request, 5)
    sane = broker.join()

    broker.advance(10_000)

    assert broker.joined(sane).error_code == ErrorCode.NONE
    [answer] = broker.take_answers(odd, JoinGroupResponse, 5)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("host", "shown"),
    [("10.0.0.7", "/10.0.0.7"), ("::1", "/0:0:0:0:0:0:0:1"), ("2001:db8::a0:0", "/2001:db8:0:0:0:0:a0:0")],
)
def test_the_address_of_a_member_is_written_as_in_java(host: str, shown: str) -> None:
    broker = a_coordinator()

    broker.join(host)
    broker.advance(10_000)

    described = broker.ask(DescribeGroupsRequest(groups=(GROUP,)), 5).groups[0]
    assert [member.client_host for member in described.members] == [shown]


def test_what_a_client_sends_behind_its_join_is_handled_when_that_is_answered() -> None:
    broker = a_coordinator()

    connection = broker.join()
    broker.send(connection, DescribeGroupsRequest(groups=(GROUP,)), 5)
    broker.advance(10_000)

    frames = [part for write in broker.written if write.connection == connection for part in write.parts]
    joined = decode_response(JoinGroupResponse, 3, bytes(frames[0])[4:])[1]
    described = decode_response(DescribeGroupsResponse, 5, bytes(frames[1])[4:])[1]
    assert joined.generation_id == 1
    assert described.groups[0].group_state == "CompletingRebalance"
