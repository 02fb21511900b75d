"""Administration finds the broker that must act, also when that changes, and says when it cannot."""

from typing import Any

import pytest

from ottla.client.admin.cluster import describe_cluster, elect_leaders
from ottla.client.admin.configs import ConfigOperation, ResourceType, alter_configs, describe_configs
from ottla.client.admin.groups import delete_group, describe_group, list_groups
from ottla.client.admin.topics import a_topic, create_topics, delete_records, delete_topics, describe_topics
from ottla.client.errors import BrokerError, TimedOut
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.apis.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from ottla.wire.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.wire.apis.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from ottla.wire.apis.describe_cluster import DescribeClusterResponse
from ottla.wire.apis.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from ottla.wire.apis.describe_groups import DescribedGroup, DescribeGroupsResponse
from ottla.wire.apis.elect_leaders import ElectLeadersResponse
from ottla.wire.apis.find_coordinator import FindCoordinatorResponse
from ottla.wire.apis.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.apis.list_groups import ListedGroup, ListGroupsResponse
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, FakeCluster


def created(code: int = 0) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=code)])


def test_topics_are_created_by_the_controller() -> None:
    cluster = FakeCluster()
    cluster.controller = 2
    cluster.script(ApiKey.CREATE_TOPICS, created())

    rows = cluster.run(create_topics(cluster.engine, [a_topic("t", partitions=3)]))

    assert [row.name for row in rows] == ["t"]
    assert [broker for broker, _, _ in cluster.requests(ApiKey.CREATE_TOPICS)] == [2]


def test_a_controller_that_moved_is_found() -> None:
    cluster = FakeCluster()

    def no_longer_me(_: Any) -> CreateTopicsResponse:
        cluster.controller = 2
        return created(ErrorCode.NOT_CONTROLLER)

    cluster.script(ApiKey.CREATE_TOPICS, no_longer_me, created())
    rows = cluster.run(create_topics(cluster.engine, [a_topic("t")]))

    assert rows[0].error_code == 0
    assert [broker for broker, _, _ in cluster.requests(ApiKey.CREATE_TOPICS)] == [1, 2]


def test_a_controller_that_dies_is_waited_for() -> None:
    cluster = FakeCluster()
    cluster.script(ApiKey.DELETE_TOPICS, HANG_UP)
    cluster.script(ApiKey.DELETE_TOPICS, DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")]))

    rows = cluster.run(delete_topics(cluster.engine, ["t"]))

    assert rows[0].error_code == 0


def test_errors_of_single_topics_are_rows_not_exceptions() -> None:
    cluster = FakeCluster()
    cluster.script(ApiKey.CREATE_TOPICS, created(ErrorCode.TOPIC_ALREADY_EXISTS))

    rows = cluster.run(create_topics(cluster.engine, [a_topic("t")]))

    assert rows[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_cluster_without_a_controller_ends_with_the_timeout_and_its_cause() -> None:
    cluster = FakeCluster()
    cluster.controller = -1

    with pytest.raises(TimedOut, match=r"CreateTopicsRequest: not done within 3000 ms; .* no controller"):
        cluster.run(create_topics(cluster.engine, [a_topic("t")], timeout_ms=3_000))


def test_what_runs_out_of_time_inside_of_what_runs_out_of_time_names_the_cause_once() -> None:
    inner = TimedOut("MetadataRequest", 60_000, BrokerError(ErrorCode.LEADER_NOT_AVAILABLE))

    outer = TimedOut("Metadata", 60_000, inner)

    assert str(outer) == "Metadata: not done within 60000 ms; last cause: LEADER_NOT_AVAILABLE"


def test_an_error_of_the_whole_call_is_raised() -> None:
    cluster = FakeCluster()
    refused = DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="no")
    cluster.script(ApiKey.DESCRIBE_CLUSTER, refused)
    cluster.script(ApiKey.ELECT_LEADERS, ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))

    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED: no"):
        cluster.run(describe_cluster(cluster.engine))
    with pytest.raises(BrokerError, match="INVALID_REQUEST"):
        cluster.run(elect_leaders(cluster.engine, [TopicPartition("t", 0)]))


@pytest.mark.parametrize("controller_knows", [True, False])
def test_a_topic_is_missing_only_if_the_controller_does_not_know_it_either(controller_knows: bool) -> None:
    cluster = FakeCluster()
    cluster.run(cluster.engine.refresh(10_000))
    cluster.controller = 2
    unknown = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="t")
    known = MetadataResponseTopic(name="t")
    answers = [unknown, known if controller_knows else unknown]
    cluster.script(ApiKey.METADATA, *(MetadataResponse(controller_id=2, topics=[topic]) for topic in answers))

    found = cluster.run(describe_topics(cluster.engine, ["t"])).topics[0]

    assert (found.error_code == 0) is controller_knows
    assert cluster.requests(ApiKey.METADATA)[-1][0] == 2


@pytest.mark.parametrize("seed", range(4))
def test_all_topics_are_those_the_controller_knows(seed: int) -> None:
    cluster = FakeCluster(brokers=3, seed=seed)
    cluster.topic("t", leaders=[1])
    cluster.controller = 3

    found = cluster.run(describe_topics(cluster.engine)).topics

    assert [row.name for row in found] == ["t"]
    assert cluster.requests(ApiKey.METADATA)[-1][0] == 3


@pytest.mark.parametrize("controller", [-1, 3])
def test_all_topics_are_told_by_another_broker_if_no_controller_answers(controller: int) -> None:
    cluster = FakeCluster(brokers=3)
    cluster.topic("t", leaders=[1])
    cluster.controller = controller
    cluster.run(cluster.engine.refresh(10_000))
    cluster.kill(3)

    found = cluster.run(describe_topics(cluster.engine)).topics

    assert [row.name for row in found] == ["t"]


def test_a_topic_placed_by_hand_has_no_counts() -> None:
    topic = a_topic("t", partitions=3, replication_factor=2, assignments={0: [1, 2]}, configs={"k": "v"})

    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert topic.assignments[0].broker_ids == (1, 2)
    assert topic.configs[0].value == "v"


def test_a_brokers_settings_are_asked_of_that_broker() -> None:
    cluster = FakeCluster()
    row = DescribeConfigsResult(resource_name="x")
    cluster.script(ApiKey.DESCRIBE_CONFIGS, *[DescribeConfigsResponse(results=[row])] * 2)
    resources = [(ResourceType.TOPIC, "t"), (ResourceType.BROKER, "2")]

    rows = cluster.run(describe_configs(cluster.engine, resources))

    assert len(rows) == 2
    asked = {m.resources[0].resource_name: b for b, _, m in cluster.requests(ApiKey.DESCRIBE_CONFIGS)}
    assert asked["2"] == 2


@pytest.mark.parametrize("controller_knows", [True, False])
def test_the_settings_of_a_topic_that_a_broker_has_not_heard_of_are_the_controllers_to_tell(
    controller_knows: bool,
) -> None:
    cluster = FakeCluster()
    cluster.controller = 2
    unknown, known = (
        DescribeConfigsResult(error_code=code, resource_type=ResourceType.TOPIC, resource_name="t")
        for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE)
    )
    answers = [unknown, known if controller_knows else unknown]
    cluster.script(ApiKey.DESCRIBE_CONFIGS, *(DescribeConfigsResponse(results=[row]) for row in answers))

    (row,) = cluster.run(describe_configs(cluster.engine, [(ResourceType.TOPIC, "t")]))

    assert (row.error_code == 0) is controller_knows
    assert cluster.requests(ApiKey.DESCRIBE_CONFIGS)[-1][0] == 2


def test_settings_of_topics_that_a_broker_has_not_heard_of_are_altered_by_the_controller() -> None:
    cluster = FakeCluster()
    cluster.controller = 2
    done, unknown, late = (
        AlterConfigsResourceResponse(error_code=code, resource_type=ResourceType.TOPIC, resource_name=name)
        for name, code in (("old", 0), ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("new", 0))
    )
    cluster.script(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        IncrementalAlterConfigsResponse(responses=[done, unknown]),
        IncrementalAlterConfigsResponse(responses=[late]),
    )
    week = {"retention.ms": (ConfigOperation.SET, "604800000")}
    changes = {(ResourceType.TOPIC, name): week for name in ("old", "new")}

    rows = cluster.run(alter_configs(cluster.engine, changes))

    assert [(row.resource_name, row.error_code) for row in rows] == [("old", 0), ("new", 0)]
    broker, _, again = cluster.requests(ApiKey.INCREMENTAL_ALTER_CONFIGS)[-1]
    assert (broker, [row.resource_name for row in again.resources]) == (2, ["new"])


def test_single_settings_are_altered() -> None:
    cluster = FakeCluster()
    cluster.script(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsResponse())
    change = {(ResourceType.TOPIC, "t"): {"retention.ms": (ConfigOperation.DELETE, None)}}

    cluster.run(alter_configs(cluster.engine, change))

    ((_, _, request),) = cluster.requests(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    assert request.resources[0].configs[0].config_operation == ConfigOperation.DELETE


def test_groups_are_listed_from_all_brokers() -> None:
    cluster = FakeCluster()
    for name in ("a", "b"):
        cluster.script(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=[ListedGroup(group_id=name)]))

    groups = cluster.run(list_groups(cluster.engine))

    assert sorted(group.group_id for group in groups) == ["a", "b"]


def test_a_coordinator_that_still_loads_is_asked_for_its_groups_again() -> None:
    cluster = FakeCluster(brokers=1)
    cluster.script(
        ApiKey.LIST_GROUPS,
        ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ListGroupsResponse(groups=[ListedGroup(group_id="a")]),
    )

    groups = cluster.run(list_groups(cluster.engine))

    assert [group.group_id for group in groups] == ["a"]


def test_a_group_is_asked_of_its_coordinator_also_when_that_moved() -> None:
    cluster = FakeCluster()
    cluster.script(
        ApiKey.FIND_COORDINATOR,
        FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE),
        FindCoordinatorResponse(node_id=1),
        FindCoordinatorResponse(node_id=2),
    )
    moved = DescribedGroup(error_code=ErrorCode.NOT_COORDINATOR)
    stable = DescribedGroup(group_id="g", group_state="Stable")
    cluster.script(ApiKey.DESCRIBE_GROUPS, *[DescribeGroupsResponse(groups=[g]) for g in (moved, stable)])

    described = cluster.run(describe_group(cluster.engine, "g"))

    assert described.group_state == "Stable"
    assert [broker for broker, _, _ in cluster.requests(ApiKey.DESCRIBE_GROUPS)] == [1, 2]


def test_deleting_a_group_that_has_members_is_an_error() -> None:
    cluster = FakeCluster()
    cluster.script(ApiKey.FIND_COORDINATOR, FindCoordinatorResponse(node_id=1))
    row = DeletableGroupResult(group_id="g", error_code=ErrorCode.NON_EMPTY_GROUP)
    cluster.script(ApiKey.DELETE_GROUPS, DeleteGroupsResponse(results=[row]))

    with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
        cluster.run(delete_group(cluster.engine, "g"))


def test_records_are_deleted_at_the_leaders() -> None:
    cluster = FakeCluster()
    cluster.topic("t", [1, 2])

    def deleted(request: Any) -> DeleteRecordsResponse:
        rows = [
            DeleteRecordsPartitionResult(partition_index=p.partition_index, low_watermark=p.offset)
            for p in request.topics[0].partitions
        ]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=rows)])

    cluster.script(ApiKey.DELETE_RECORDS, deleted, deleted)
    before = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6}

    rows = cluster.run(delete_records(cluster.engine, before))

    assert {partition: row.low_watermark for partition, row in rows.items()} == before
    assert sorted(broker for broker, _, _ in cluster.requests(ApiKey.DELETE_RECORDS)) == [1, 2]
