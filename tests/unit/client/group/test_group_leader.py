"""A member that leads its group: what it makes of what others say, of racks, and of topics that change."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.config import ConsumerConfig
from ottla.client.group.config import MembershipConfig
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.subscriptions import Share, decode_share, encode_subscription
from ottla.model.ids import TopicPartition
from ottla.wire.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.wire.apis.heartbeat import HeartbeatResponse
from ottla.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.apis.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from ottla.wire.apis.sync_group import SyncGroupResponse
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription, decode_subscription, encode_blob
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FOR_EVER = 1_000


class Led(FakeCluster):
    """Two brokers in two racks, one partition on each; our member leads, and ``others`` are in the group."""

    def __init__(self, strategy: str = "range", rack: str = "", **others: bytes) -> None:
        super().__init__()
        self.racks = {1: "r1", 2: "r2"}
        self.topic("orders", [1, 2])
        self.logs[ORDERS_0].replicas, self.logs[ORDERS_1].replicas = (1,), (2,)
        self.generation = 0
        self._others = others
        found = Coordinator(key="g", node_id=1, host="broker", port=9001)
        finding = FindCoordinatorResponse(node_id=1, host="broker", port=9001, coordinators=[found])
        self.script(ApiKey.FIND_COORDINATOR, *[finding] * FOR_EVER)
        self.script(ApiKey.JOIN_GROUP, *[self.joined] * FOR_EVER)
        self.script(ApiKey.SYNC_GROUP, *[self.synced] * FOR_EVER)
        self.script(ApiKey.HEARTBEAT, *[HeartbeatResponse()] * FOR_EVER)
        nothing = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])
        self.script(ApiKey.OFFSET_FETCH, *[nothing] * FOR_EVER)
        membership = MembershipConfig(
            partition_assignment_strategy=(strategy,), enable_auto_commit=False, session_timeout_ms=6_000
        )
        config = ConsumerConfig(client_rack=rack)
        self.consumer = GroupConsumerCore(self.engine, "g", ["orders"], config, membership)

    def joined(self, asked: Any) -> JoinGroupResponse:
        self.generation += 1
        rows = [JoinGroupResponseMember(member_id="me", metadata=asked.protocols[0].metadata)]
        rows += [
            JoinGroupResponseMember(member_id=name, metadata=blob) for name, blob in self._others.items()
        ]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name=asked.protocols[0].name,
            leader="me",
            member_id="me",
            members=rows,
        )

    def synced(self, asked: Any) -> SyncGroupResponse:
        (mine,) = [row.assignment for row in asked.assignments if row.member_id == "me"]
        return SyncGroupResponse(assignment=bytes(mine))

    def gather(self) -> None:
        self.run_until(lambda: self.consumer.membership.is_stable, ms_max=60_000)

    def shares(self) -> dict[str, frozenset[TopicPartition]]:
        rows = self.requests(ApiKey.SYNC_GROUP)[-1][2].assignments
        return {row.member_id: decode_share(bytes(row.assignment)) for row in rows}

    def said(self) -> ConsumerProtocolSubscription:
        """What our member told when it joined last."""
        return decode_subscription(self.requests(ApiKey.JOIN_GROUP)[-1][2].protocols[0].metadata)


def another(rack: str = "") -> bytes:
    return encode_subscription("range", ["orders"], Share(), Share(), rack)


def test_a_leader_gives_members_what_is_near_them() -> None:
    cluster = Led(rack="r1", another=another("r2"))

    cluster.gather()

    assert cluster.shares() == {"me": {ORDERS_0}, "another": {ORDERS_1}}
    assert cluster.said().rack_id == "r1"


def test_a_leader_without_racks_goes_by_names() -> None:
    cluster = Led(another=another())

    cluster.gather()

    assert cluster.shares() == {"another": {ORDERS_0}, "me": {ORDERS_1}}
    assert cluster.said().rack_id is None


@pytest.mark.parametrize("rack", ["r1", ""])
def test_a_leader_that_names_its_rack_shares_out_anew_when_partitions_move_between_racks(rack: str) -> None:
    cluster = Led(rack=rack, another=another("r2"))
    cluster.gather()

    cluster.logs[ORDERS_0].replicas = (2,)
    cluster.engine.refresh_soon()
    cluster.pass_time(10_000)

    assert cluster.generation == (2 if rack else 1)


def test_a_broker_that_is_away_has_not_moved() -> None:
    cluster = Led(rack="r1", another=another("r2"))
    cluster.gather()

    cluster.down.add(2)
    cluster.engine.refresh_soon()
    cluster.run_until(lambda: 2 not in cluster.engine.metadata.brokers, ms_max=60_000)
    cluster.pass_time(10_000)

    assert cluster.generation == 1


def test_a_member_that_leaves_out_what_its_version_should_have_gets_its_share() -> None:
    blob = encode_blob(ConsumerProtocolSubscription(topics=("orders",)), 0)
    cluster = Led(another=b"\0\1" + blob[2:], garbage=b"\0")

    cluster.gather()

    assert cluster.shares() == {"another": {ORDERS_0}, "me": {ORDERS_1}, "garbage": frozenset()}


def test_a_cooperative_member_tells_its_generation_also_where_older_leaders_look() -> None:
    cluster = Led("cooperative-sticky")
    cluster.gather()
    assert cluster.said().user_data == (-1).to_bytes(4, "big", signed=True)

    cluster.logs[TopicPartition("orders", 2)] = type(cluster.logs[ORDERS_0])(1)
    cluster.engine.refresh_soon()
    cluster.run_until(lambda: cluster.generation == 2, ms_max=60_000)

    assert cluster.said().user_data == (1).to_bytes(4, "big")
    assert cluster.said().generation_id == 1
