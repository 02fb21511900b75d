"""The audit reads every replica up to the leader's high watermark, and names those that it cannot compare."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

from ottla.model.errors import ErrorCode
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.audit import find_replicas
from ottla.spark.options.kafka_settings import kafka_settings
from ottla.spark.read.replicas import Replica, read_replica
from ottla.wire.apis.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.apis.metadata import MetadataResponseTopic
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, FakeClient
from support.client.two_copies import FOLLOWER, LEADER, ORDERS, TwoCopies


@pytest.fixture
def cluster() -> TwoCopies:
    return TwoCopies()


def rows(cluster: TwoCopies, broker: int, until: int) -> list[tuple[int, int, int]]:
    """Base offsets, where the audit ends, and where the log begins."""
    kafka = kafka_settings({"kafka.bootstrap.servers": SERVERS}, is_sink=False)
    replica = Replica(ORDERS, broker, until)
    batches = read_replica(FakeClient(cluster), kafka, replica)  # type: ignore[arg-type]
    found = [row for batch in batches for row in batch.to_pylist()]
    return [(row["base_offset"], row["until"], row["log_start_offset"]) for row in found]


def test_a_replica_is_read_up_to_the_leaders_high_watermark(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)

    assert rows(cluster, FOLLOWER, 3) == [(0, 3, 0), (1, 3, 0), (2, 3, 0), (-1, 3, 0)]


def test_a_replica_that_has_lost_its_end_is_read_as_far_as_it_goes(cluster: TwoCopies) -> None:
    cluster.write(1, LEADER, FOLLOWER)
    cluster.write(2, LEADER)

    assert rows(cluster, FOLLOWER, 3) == [(0, 3, 0), (-1, 3, 0)], "below the same end as the others"
    assert rows(cluster, LEADER, 3)[-2] == (2, 3, 0)


def test_a_replica_that_learns_the_high_watermark_later_is_waited_for(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)
    late = PartitionData(high_watermark=0, log_start_offset=0)
    cluster.script(ApiKey.FETCH, *[FetchResponse(responses=[FetchableTopicResponse(partitions=[late])])] * 5)

    assert [offset for offset, _, _ in rows(cluster, FOLLOWER, 3)] == [0, 1, 2, -1]


def test_a_follower_whose_retention_ran_first_is_read_from_its_own_beginning(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)
    cluster.copies[FOLLOWER].start_offset = 2

    assert rows(cluster, FOLLOWER, 3) == [(2, 3, 2), (-1, 3, 2)]


def test_retention_while_a_replica_is_read_ends_nothing(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)

    def out_of_range(_: Any) -> FetchResponse:
        cluster.copies[FOLLOWER].start_offset = 1
        gone = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[gone])])

    cluster.script(ApiKey.FETCH, out_of_range)

    assert rows(cluster, FOLLOWER, 3) == [(1, 3, 1), (2, 3, 1), (-1, 3, 1)]


def test_a_broker_that_does_not_answer_is_named(cluster: TwoCopies) -> None:
    offline = PartitionData(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[offline])])
    cluster.script(ApiKey.FETCH, *[answer] * 1000)

    with pytest.raises(SparkRefused, match="broker 2 could not be asked for orders-0: KAFKA_STORAGE_ERROR"):
        rows(cluster, FOLLOWER, 3)


def replicas(cluster: TwoCopies, topics: str | None, **changes: Any) -> Any:
    """What the audit finds, if the partition's row in the metadata is changed like this."""
    real = cluster._topic_row

    def changed(name: str) -> MetadataResponseTopic:
        row = real(name)
        for partition in row.partitions:
            for field, value in changes.items():
                setattr(partition, field, value)
        return row

    cluster._topic_row = changed  # type: ignore[method-assign]
    configs = DescribeConfigsResponse(results=[DescribeConfigsResult(resource_name="orders")])
    cluster.script(ApiKey.DESCRIBE_CONFIGS, configs)
    return find_replicas(FakeClient(cluster), topics)  # type: ignore[arg-type]


def test_replicas_in_sync_are_compared_up_to_the_leaders_end(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)

    found = replicas(cluster, "orders")

    assert found.replicas == [Replica(ORDERS, LEADER, 3), Replica(ORDERS, FOLLOWER, 3)]
    assert (found.left_out, found.missing) == ([], [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"isr_nodes": (1,)}, "it is not in sync"),
        ({"offline_replicas": (2,), "isr_nodes": (1,)}, "its log is offline"),
        ({"replica_nodes": (1, 3), "isr_nodes": (1,)}, "its broker is gone"),
    ],
)
def test_a_replica_that_cannot_be_compared_is_named_with_the_reason(
    cluster: TwoCopies, changes: dict[str, Any], why: str
) -> None:
    found = replicas(cluster, "orders", **changes)

    (absent,) = set(changes.get("replica_nodes", (1, 2))) - {LEADER}
    assert found.left_out == [("orders-0", absent, why)]
    assert [replica.broker for replica in found.replicas] == [LEADER]


def test_a_partition_without_a_leader_is_named_at_once(cluster: TwoCopies) -> None:
    found = replicas(cluster, "orders", leader_id=-1)

    assert found.left_out == [("orders-0", broker, "the partition has no leader") for broker in (1, 2)]
    assert found.replicas == []


def test_a_topic_that_was_named_and_is_not_there_is_told(cluster: TwoCopies) -> None:
    assert replicas(cluster, "orders, ordres").missing == ["ordres"]
