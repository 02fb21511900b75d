"""Offsets that consumers of old kept in ZooKeeper: what somebody else wrote there may be anything."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.znodes import paths
from ottla.zookeeper.ops import Create
from support.bench.led_broker import ME, TOPIC, LedBroker

GROUP = "old"


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        (b"42", 42),
        (b"-1", -1),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", None),
        (b"9" * 5_000, None),
        (b" 42", None),
        (b"4_2", None),
        (b"", None),
        (b"soon", None),
    ],
)
def test_an_offset_is_a_number_that_an_answer_can_hold(content: bytes, offset: int | None) -> None:
    broker = LedBroker().lead(isr=(ME,))
    path = paths.consumer_offset(GROUP, TopicPartition(TOPIC, 0))
    for parent in paths.parents(path):
        broker.zk(Create(parent))
    broker.zk(Create(path, content))
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))]

    [row] = broker.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), 0).topics[0].partitions

    expected = (-1, ErrorCode.UNKNOWN_SERVER_ERROR) if offset is None else (offset, ErrorCode.NONE)
    assert (row.committed_offset, row.error_code) == expected
