"""One fetch of one partition: who is asked, what is said of it, and what is learned from a refusal."""

import pytest

from ottla.client.config import ConsumerConfig
from ottla.client.errors import BrokerError, ConnectionLost
from ottla.client.fetching.fetch_partition import fetch_partition
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.keys import ApiKey
from support.client.two_copies import FOLLOWER, LEADER, ORDERS, TwoCopies

CONFIG = ConsumerConfig()


def a_cluster() -> TwoCopies:
    cluster = TwoCopies()
    cluster.engine.want_topics("orders")
    cluster.pass_time(100)
    return cluster


def answer(row: PartitionData, **fields: object) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[row])], **fields)  # type: ignore[arg-type]


def asked(cluster: TwoCopies) -> list[int]:
    return [broker for broker, _, _ in cluster.requests(ApiKey.FETCH)]


def test_the_leader_is_asked_unless_a_replica_is_named() -> None:
    cluster = a_cluster()
    cluster.write(2, LEADER, FOLLOWER)

    of_leader = cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 1))
    of_follower = cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0, broker=FOLLOWER))

    assert asked(cluster) == [LEADER, FOLLOWER]
    assert (of_leader.high_watermark, of_follower.high_watermark) == (2, 2)
    _, _, request = cluster.requests(ApiKey.FETCH)[0]
    assert request.topics[0].partitions[0].fetch_offset == 1


def test_a_topic_is_asked_for_by_the_id_that_is_meant() -> None:
    cluster = a_cluster()
    meant = bytes(15) + b"\x09"

    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_ID"):
        cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0, topic_id=meant))

    _, _, request = cluster.requests(ApiKey.FETCH)[0]
    assert request.topics[0].topic_id == meant


def test_a_partition_that_nobody_leads_is_not_asked_for() -> None:
    cluster = a_cluster()
    unknown = TopicPartition("orders", 7)

    with pytest.raises(ConnectionLost, match="the leader of orders-7 is not known"):
        cluster.run(fetch_partition(cluster.engine, CONFIG, unknown, 0))
    with pytest.raises(ConnectionLost, match="no longer name orders-7"):
        cluster.run(fetch_partition(cluster.engine, CONFIG, unknown, 0, broker=FOLLOWER))

    assert asked(cluster) == []


def test_a_broker_that_names_the_new_leader_sends_the_next_attempt_there() -> None:
    cluster = a_cluster()
    moved = PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(FOLLOWER, 99)
    )
    cluster.script(ApiKey.FETCH, answer(moved, node_endpoints=[NodeEndpoint(FOLLOWER, "two", 9092)]))

    with pytest.raises(BrokerError) as refused:
        cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0))
    cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0))

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert asked(cluster) == [LEADER, FOLLOWER]


def test_a_response_that_says_nothing_of_the_partition_may_be_asked_for_again() -> None:
    cluster = a_cluster()
    cluster.script(ApiKey.FETCH, FetchResponse())

    with pytest.raises(ConnectionLost, match="answered without orders-0"):
        cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0))


def test_an_error_of_the_whole_response_is_raised() -> None:
    cluster = a_cluster()
    cluster.script(ApiKey.FETCH, FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))

    with pytest.raises(BrokerError, match="UNKNOWN_SERVER_ERROR"):
        cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0))


def test_what_was_fetched_survives_the_pause_that_the_broker_asks_for() -> None:
    cluster = a_cluster()
    throttled = answer(PartitionData(records=b"batches"), throttle_time_ms=500)
    cluster.script(ApiKey.FETCH, throttled)
    before_ms = cluster.engine.now_ms

    row = cluster.run(fetch_partition(cluster.engine, CONFIG, ORDERS, 0))

    assert row.records == b"batches"
    assert isinstance(row.records, bytes)
    assert cluster.engine.now_ms - before_ms >= 500
