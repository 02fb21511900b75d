"""Links, versions, timeouts and metadata of the client, against brokers in memory."""

from itertools import pairwise
from typing import Any

import pytest

from ottla.client.config import parse_bootstrap_servers
from ottla.client.engine.metadata import Metadata
from ottla.client.engine.tasks import ANY_BROKER, Operation, ask, sleep
from ottla.client.errors import (
    BrokerError,
    ClientClosed,
    ConnectionLost,
    RequestTimedOut,
    Unsendable,
    UnsupportedByBroker,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.apis.produce import ProduceRequest, ProduceResponse
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE, FakeCluster


def metadata_of(cluster: FakeCluster, target: int | None = None) -> Operation[MetadataResponse]:
    return ask(ANY_BROKER if target is None else target, MetadataRequest(topics=[]), MetadataResponse)


def known(cluster: FakeCluster) -> FakeCluster:
    assert cluster.run(cluster.engine.refresh(cluster.now_ms + 10_000))
    return cluster


@pytest.mark.parametrize(
    "request_",
    [MetadataRequest(topics=[MetadataRequestTopic(name="n" * 40_000)]), ProduceRequest(acks=2**20)],
)
def test_what_no_message_can_say_is_told_to_its_asker_alone(request_: Any) -> None:
    cluster = known(FakeCluster())

    with pytest.raises(Unsendable, match="does not fit into Kafka's protocol"):
        cluster.run(ask(ANY_BROKER, request_, MetadataResponse))

    assert cluster.run(metadata_of(cluster)).brokers


def test_any_broker_means_the_one_that_is_up() -> None:
    cluster = FakeCluster()
    cluster.down.add(1)

    known(cluster)

    assert list(cluster.engine.metadata.brokers) == [2]


@pytest.mark.parametrize("seed", range(20))
def test_a_broker_that_refuses_is_not_tried_again_before_the_others(seed: int) -> None:
    cluster = FakeCluster(seed=seed)
    cluster.down.add(1)
    before_ms = cluster.now_ms

    known(cluster)

    one_pause_ms = 1.2 * cluster.engine.config.retry_backoff_ms
    assert cluster.now_ms - before_ms <= one_pause_ms


def test_no_broker_at_all_is_named_as_the_cause() -> None:
    cluster = FakeCluster()
    cluster.down = {1, 2}

    assert not cluster.run(cluster.engine.refresh(cluster.now_ms + 10_000))

    assert "connection refused" in str(cluster.engine.metadata_error)


def test_every_broker_is_asked_first_what_it_speaks() -> None:
    cluster = known(FakeCluster())

    cluster.run(metadata_of(cluster, 2))

    assert [type(m).__name__ for b, _, m in cluster.asked if b == 2][:2] == [
        "ApiVersionsRequest",
        "MetadataRequest",
    ]


def test_the_newest_common_version_is_spoken() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.METADATA] = (0, 5)

    known(cluster)

    assert {version for _, version, _ in cluster.requests(ApiKey.METADATA)} == {5}


def test_a_broker_that_is_too_old_for_our_greeting_is_greeted_again() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.API_VERSIONS] = (0, 1)

    known(cluster)

    assert {version for _, version, _ in cluster.requests(ApiKey.API_VERSIONS)} == {1}


def test_an_api_that_the_broker_does_not_have_is_an_error_of_the_call_alone() -> None:
    cluster = known(FakeCluster())
    del cluster.versions[ApiKey.DESCRIBE_CLUSTER]
    cluster.kill(1)
    cluster.down.clear()

    with pytest.raises(UnsupportedByBroker):
        cluster.run(ask(1, DescribeClusterRequest(), DescribeClusterResponse))
    cluster.run(metadata_of(cluster, 1))


def test_a_request_that_the_brokers_version_cannot_carry_is_an_error_of_the_call_alone() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.PRODUCE] = (0, 2)
    known(cluster)

    with pytest.raises(UnsupportedByBroker, match="transactional_id"):
        cluster.run(ask(1, ProduceRequest(transactional_id="t"), ProduceResponse))
    cluster.run(metadata_of(cluster, 1))


def test_a_broker_that_hangs_up_fails_all_who_wait_and_is_asked_again_later() -> None:
    cluster = known(FakeCluster())
    cluster.script(ApiKey.METADATA, SILENCE, HANG_UP)
    tasks = [cluster.spawn(metadata_of(cluster, 2)) for _ in range(2)]

    cluster.run_until(lambda: all(task.is_done for task in tasks))

    assert all(isinstance(task.error, ConnectionLost) for task in tasks)
    cluster.run(metadata_of(cluster, 2))


def test_silence_ends_with_the_request_timeout() -> None:
    cluster = known(FakeCluster(request_timeout_ms=5_000))
    cluster.script(ApiKey.METADATA, SILENCE)
    started_ms = cluster.now_ms

    with pytest.raises(RequestTimedOut, match="MetadataRequest"):
        cluster.run(metadata_of(cluster, 2))

    assert 5_000 <= cluster.now_ms - started_ms < 5_100


def test_a_frozen_broker_that_accepts_and_never_greets_is_left_for_another() -> None:
    cluster = FakeCluster(socket_connection_setup_timeout_ms=3_000)
    cluster.script(ApiKey.API_VERSIONS, SILENCE)
    started_ms = cluster.now_ms

    known(cluster)

    assert 3_000 <= cluster.now_ms - started_ms < 3_500
    assert len({broker for broker, _, _ in cluster.asked}) == 2


def test_a_broker_that_is_down_is_tried_again_after_growing_pauses() -> None:
    cluster = known(FakeCluster(reconnect_backoff_ms=100, reconnect_backoff_max_ms=400))
    cluster.kill(2)
    times = []
    for _ in range(5):
        with pytest.raises(ConnectionLost):
            cluster.run(metadata_of(cluster, 2))
        times.append(cluster.now_ms)

    assert [later - earlier for earlier, later in pairwise(times)] == [100, 200, 400, 400]


def test_a_response_out_of_order_or_of_garbage_closes_the_link() -> None:
    cluster = known(FakeCluster())
    cluster.run(metadata_of(cluster, 1))
    cluster.is_holding = True
    tasks = [cluster.spawn(metadata_of(cluster, 1)) for _ in range(2)]
    cluster.settle()

    cluster.release(order=lambda held: held[::-1])

    assert all(isinstance(task.error, ConnectionLost) for task in tasks)
    assert "out of order" in str(tasks[0].error)


def test_an_unknown_broker_is_a_lost_connection() -> None:
    cluster = known(FakeCluster())

    with pytest.raises(ConnectionLost, match="99"):
        cluster.run(metadata_of(cluster, 99))


def test_a_broker_that_moved_is_asked_at_its_new_address() -> None:
    cluster = known(FakeCluster())
    cluster.run(metadata_of(cluster, 2))
    cluster.brokers[2] = ("elsewhere", 9002)

    known(cluster)
    cluster.run(metadata_of(cluster, 2))

    assert cluster.engine.metadata.brokers[2].host == "elsewhere"


def test_closing_ends_all_who_wait() -> None:
    cluster = known(FakeCluster())
    cluster.script(ApiKey.METADATA, SILENCE)
    task = cluster.spawn(metadata_of(cluster, 1))
    cluster.settle()

    cluster.engine.close()

    assert isinstance(task.error, ClientClosed)
    late = cluster.spawn(metadata_of(cluster, 1))
    cluster.settle()
    assert isinstance(late.error, ClientClosed)


def test_a_cancelled_task_hears_no_late_answer() -> None:
    cluster = known(FakeCluster())
    task = cluster.spawn(sleep(100))
    cluster.settle()

    cluster.engine.cancel(task)
    cluster.pass_time(200)

    assert isinstance(task.error, ClientClosed)


def test_metadata_is_refreshed_when_it_is_old() -> None:
    cluster = known(FakeCluster(metadata_max_age_ms=60_000))
    before = len(cluster.requests(ApiKey.METADATA))

    cluster.pass_time(61_000, step_ms=500)

    assert len(cluster.requests(ApiKey.METADATA)) == before + 1


def partition_row(leader: int, epoch: int, error_code: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=epoch, error_code=error_code
    )


def response_with(row: MetadataResponsePartition, topic_id: bytes = b"i" * 16) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=n, host="h", port=1) for n in (1, 2)]
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[row])
    return MetadataResponse(brokers=brokers, topics=[topic])


def test_a_broker_that_lags_behind_does_not_turn_a_leader_back() -> None:
    metadata = Metadata()
    metadata.merge(response_with(partition_row(leader=2, epoch=5)))

    metadata.merge(response_with(partition_row(leader=1, epoch=4)))

    assert metadata.leader_of(TopicPartition("t", 0)) == 2


def test_a_topic_created_anew_begins_with_new_epochs() -> None:
    metadata = Metadata()
    metadata.merge(response_with(partition_row(leader=2, epoch=5)))

    metadata.merge(response_with(partition_row(leader=1, epoch=0), topic_id=b"j" * 16))

    assert metadata.leader_of(TopicPartition("t", 0)) == 1


def test_a_partition_without_a_leader_has_none() -> None:
    metadata = Metadata()

    metadata.merge(response_with(partition_row(2, 5, ErrorCode.LEADER_NOT_AVAILABLE)))

    assert metadata.leader_of(TopicPartition("t", 0)) is None


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a:1", (("a", 1),)),
        (" a:1 , b:65535,", (("a", 1), ("b", 65535))),
        ("[::1]:9092", (("::1", 9092),)),
    ],
)
def test_bootstrap_servers_are_hosts_with_ports(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_bootstrap_servers(text) == servers


@pytest.mark.parametrize("text", ["", " , ", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"bootstrap|host:port"):
        parse_bootstrap_servers(text)


def test_an_error_code_from_a_newer_broker_is_an_unknown_error() -> None:
    assert BrokerError(9999).code is ErrorCode.UNKNOWN_SERVER_ERROR
