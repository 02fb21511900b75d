"""What a plan starts from: racks only if all brokers have one, and moves that go on already."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.model.ids import TopicPartition
from ottla.spark.jobs.plan import measure, racks_of
from ottla.wire.apis.describe_log_dirs import DescribeLogDirsResponse
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.wire.apis.metadata import MetadataResponseBroker
from ottla.wire.keys import ApiKey
from support.client.fake_client import FakeClient
from support.client.fake_cluster import FakeCluster


def test_a_partition_on_the_move_is_measured_where_it_goes() -> None:
    cluster = FakeCluster()
    cluster.topic("orders", leaders=[1, 2])
    row = OngoingPartitionReassignment(
        partition_index=1, replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(2,)
    )
    topics = [OngoingTopicReassignment(name="orders", partitions=[row])]
    cluster.script(ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse(topics=topics))
    cluster.script(ApiKey.DESCRIBE_LOG_DIRS, *[DescribeLogDirsResponse()] * 2)
    client: Any = FakeClient(cluster)

    found = measure(client)

    assert found.before == {TopicPartition("orders", 0): [1, 2], TopicPartition("orders", 1): [3, 1]}
    assert found.moving == [TopicPartition("orders", 1)]
    assert found.racks == {}


def test_racks_count_if_every_broker_has_one() -> None:
    brokers = [MetadataResponseBroker(node_id=n, rack=f"rack-{n}") for n in range(2)]

    assert racks_of(brokers) == {0: "rack-0", 1: "rack-1"}
    assert racks_of([*brokers, MetadataResponseBroker(node_id=2)]) == {}
