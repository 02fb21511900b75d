"""One attempt to have a batch written: who is asked, and what is learned from a refusal."""

import pytest

from ottla.client.errors import BrokerError, ConnectionLost
from ottla.client.producing.produce_batch import produce_batch
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch
from ottla.wire.apis.produce import ProduceResponse
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster
from support.client.producing import ORDERS_0, a_cluster, refusal, values_in

ALL, NOBODY = -1, 0
BATCH = build_batch([Record(None, b"one")])


def known(cluster: FakeCluster) -> FakeCluster:
    cluster.engine.want_topics("orders")
    cluster.pass_time(100)
    return cluster


def asked(cluster: FakeCluster) -> list[int]:
    return [broker for broker, _, _ in cluster.requests(ApiKey.PRODUCE)]


def test_a_batch_is_written_by_the_present_leader() -> None:
    cluster = known(a_cluster([2]))

    row = cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))

    assert (asked(cluster), row.base_offset) == ([2], 0)
    assert values_in(cluster) == [b"one"]


def test_with_acks_0_nobody_waits_for_an_answer() -> None:
    cluster = known(a_cluster())

    assert cluster.run(produce_batch(cluster.engine, NOBODY, ORDERS_0, BATCH)) is None
    assert values_in(cluster) == [b"one"]


def test_without_a_leader_nobody_is_asked_and_metadata_are_refreshed() -> None:
    cluster = known(a_cluster())
    before = len(cluster.requests(ApiKey.METADATA))

    with pytest.raises(ConnectionLost, match="the leader of orders-7 is not known"):
        cluster.run(produce_batch(cluster.engine, ALL, TopicPartition("orders", 7), BATCH))
    cluster.pass_time(1_000)

    assert asked(cluster) == []
    assert len(cluster.requests(ApiKey.METADATA)) > before


def test_a_broker_that_names_the_new_leader_sends_the_next_attempt_there_at_once() -> None:
    cluster = known(a_cluster())
    cluster.logs[ORDERS_0].leader = 2
    moved = refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=LeaderIdAndEpoch(2, 99))
    cluster.script(ApiKey.PRODUCE, moved)

    with pytest.raises(BrokerError) as refused:
        cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))
    cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert asked(cluster) == [1, 2]


def test_a_broker_that_does_not_lead_and_knows_no_better_is_not_asked_again_before_news() -> None:
    cluster = known(a_cluster())
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    with pytest.raises(BrokerError):
        cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))

    assert cluster.engine.metadata.leader_of(ORDERS_0) is None
    cluster.move_leader(ORDERS_0, 2)
    cluster.pass_time(1_000)
    cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))
    assert asked(cluster) == [1, 2]


def test_a_refusal_that_is_no_matter_of_leaders_leaves_the_leader_known() -> None:
    cluster = known(a_cluster())
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.MESSAGE_TOO_LARGE))

    with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
        cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))

    assert cluster.engine.metadata.leader_of(ORDERS_0) == 1


def test_a_response_that_says_nothing_of_the_partition_leaves_the_batch_unwritten() -> None:
    cluster = known(a_cluster())
    cluster.script(ApiKey.PRODUCE, ProduceResponse())

    with pytest.raises(ConnectionLost, match="answered without orders-0"):
        cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))


def test_the_pause_that_a_broker_asks_for_is_kept() -> None:
    cluster = known(a_cluster())

    def throttled(request: object) -> ProduceResponse:
        response: ProduceResponse = refusal(ErrorCode.NONE)(request)
        response.throttle_time_ms = 500
        return response

    cluster.script(ApiKey.PRODUCE, throttled)
    before_ms = cluster.engine.now_ms

    cluster.run(produce_batch(cluster.engine, ALL, ORDERS_0, BATCH))

    assert cluster.engine.now_ms - before_ms >= 500
