"""UpdateMetadata and what clients then see: fences, merging, listeners, ids, creation on the way."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import ZERO_TOPIC_ID
from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.znodes import paths
from ottla.znodes.codec import decode_topic
from ottla.znodes.codec_config import decode_config
from support.bench.led_broker import LedBroker
from support.bench.node_bench import Bench, a_config

ORDERS_ID = bytes(range(16))


def a_broker(broker: int, *listeners: str, rack: str | None = None) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(port=9092 + broker, host=f"host{broker}", listener=listener)
        for listener in listeners or ("PLAINTEXT",)
    ]
    return UpdateMetadataBroker(id=broker, endpoints=endpoints, rack=rack)


def a_topic(name: str = "orders", topic_id: bytes = ORDERS_ID, **leaders: int) -> UpdateMetadataTopicState:
    states = [
        UpdateMetadataPartitionState(
            partition_index=int(index[1:]),
            controller_epoch=1,
            leader=leader,
            leader_epoch=3,
            isr=(1, 2),
            zk_version=4,
            replicas=(1, 2, 3),
            offline_replicas=(3,),
        )
        for index, leader in (leaders or {"p0": 1}).items()
    ]
    return UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=states)


def an_update(bench: Bench, *topics: UpdateMetadataTopicState, **fields: object) -> UpdateMetadataRequest:
    values: dict[str, object] = {
        "controller_id": 2,
        "controller_epoch": 1,
        "broker_epoch": bench.node.identity.broker_epoch,
        "topic_states": list(topics),
        "live_brokers": [a_broker(1), a_broker(2)],
    }
    return UpdateMetadataRequest(**(values | fields))  # type: ignore[arg-type]


def update(bench: Bench, *topics: UpdateMetadataTopicState, **fields: object) -> int:
    code: int = bench.ask(an_update(bench, *topics, **fields), 8).error_code
    return code


def metadata(bench: Bench, *names: str, version: int = 12, create: bool = False) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer: MetadataResponse = bench.ask(
        MetadataRequest(topics=topics or None, allow_auto_topic_creation=create), version
    )
    return answer


def test_a_broker_that_heard_nothing_names_itself_alone() -> None:
    """Found by chaos: a consumer that was told of no broker at all never came back."""
    bench = Bench().start()
    bench.node.metadata.brokers = {}
    bench.node.metadata.controller = -1  # type: ignore[assignment]

    answer = metadata(bench)

    assert [(row.node_id, row.host, row.port) for row in answer.brokers] == [(1, "one", 9092)]
    assert answer.controller_id == -1
    assert answer.cluster_id == bench.node.identity.cluster_id


def test_a_broker_that_was_told_of_no_topic_yet_denies_none() -> None:
    bench = Bench().start()
    bench.node.metadata.brokers = {}

    assert metadata(bench, "orders", create=True).topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert paths.topic("orders") not in bench.tree.nodes

    update(bench)
    assert metadata(bench, "orders").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_with_logs_waits_for_the_update_that_names_topics() -> None:
    """Found by chaos: a new controller first tells who is alive, and names the partitions a moment later."""
    broker = LedBroker().lead()
    broker.node.metadata.topics.clear()
    broker.node.metadata.has_heard_of_topics = False
    update(broker, controller_epoch=9)

    assert metadata(broker, "orders").topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE

    update(broker, a_topic(), controller_epoch=9)
    assert metadata(broker, "orders").topics[0].error_code == ErrorCode.NONE
    assert metadata(broker, "nowhere").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_clients_are_shown_what_the_controller_told() -> None:
    bench = Bench().start()
    assert update(bench, a_topic(p0=1, p1=2)) == ErrorCode.NONE

    answer = metadata(bench, "orders")

    assert answer.controller_id == 2
    assert [(row.node_id, row.host, row.port) for row in answer.brokers] == [
        (1, "host1", 9093),
        (2, "host2", 9094),
    ]
    topic = answer.topics[0]
    assert (topic.name, topic.topic_id, topic.error_code) == ("orders", ORDERS_ID, 0)
    partition = topic.partitions[1]
    assert (partition.leader_id, partition.leader_epoch) == (2, 3)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == (
        (1, 2, 3),
        (1, 2),
        (3,),
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"controller_epoch": 4}, ErrorCode.STALE_CONTROLLER_EPOCH),
        ({"broker_epoch": 0}, ErrorCode.STALE_BROKER_EPOCH),
        ({"is_kraft_controller": True}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"broker_epoch": -1, "controller_epoch": 9}, ErrorCode.NONE),
        ({"broker_epoch": 2**40, "controller_epoch": 9}, ErrorCode.NONE),
        ({"controller_epoch": 5}, ErrorCode.NONE),
    ],
)
def test_an_update_passes_the_fences_or_changes_nothing(fields: dict[str, object], code: ErrorCode) -> None:
    bench = Bench().start()
    update(bench, controller_epoch=5)

    answered = update(bench, a_topic(), controller_id=9, **fields)

    assert answered == code
    is_applied = code is ErrorCode.NONE
    assert ("orders" in bench.node.metadata.topics) == is_applied
    assert (bench.node.metadata.controller == 9) == is_applied


def test_brokers_are_replaced_and_partitions_merged() -> None:
    bench = Bench().start()
    update(bench, a_topic(p0=1, p1=1))

    update(bench, a_topic(p1=2), live_brokers=[a_broker(1), a_broker(4)], controller_id=4)

    image = bench.node.metadata
    assert set(image.brokers) == {1, 4}
    assert {number: info.leader for number, info in image.topics["orders"].partitions.items()} == {0: 1, 1: 2}


def test_the_last_partition_that_is_deleted_takes_the_topic_and_its_id_along() -> None:
    bench = Bench().start()
    update(bench, a_topic(p0=1, p1=1))

    update(bench, a_topic(p0=-2))
    assert list(bench.node.metadata.topics["orders"].partitions) == [1]
    update(bench, a_topic(p1=-2))

    assert "orders" not in bench.node.metadata.topics
    assert ORDERS_ID not in bench.node.metadata.topic_names


def test_a_topic_made_anew_is_found_by_its_new_id_alone() -> None:
    bench = Bench().start()
    update(bench, a_topic())
    new_id = bytes(reversed(ORDERS_ID))

    update(bench, a_topic(topic_id=new_id))

    answer = bench.ask(
        MetadataRequest(
            topics=[
                MetadataRequestTopic(name=None, topic_id=ORDERS_ID),
                MetadataRequestTopic(name=None, topic_id=new_id),
            ]
        ),
        12,
    )
    assert [(row.name, row.error_code) for row in answer.topics] == [
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("orders", 0),
    ]


def test_a_zero_id_removes_the_one_that_was_known() -> None:
    bench = Bench().start()
    update(bench, a_topic())

    update(bench, a_topic(topic_id=ZERO_TOPIC_ID))

    assert bench.node.metadata.topic_id("orders") == ZERO_TOPIC_ID
    assert bench.node.metadata.topic_names == {}


@pytest.mark.parametrize(
    ("version", "error", "leader"),
    [
        (12, ErrorCode.LISTENER_NOT_FOUND, -1),
        (6, ErrorCode.LISTENER_NOT_FOUND, -1),
        (5, ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ],
)
def test_a_leader_without_the_clients_listener_is_not_shown(
    version: int, error: ErrorCode, leader: int
) -> None:
    bench = Bench().start()
    update(bench, a_topic(p0=2), live_brokers=[a_broker(1), a_broker(2, "INSIDE")])

    answer = metadata(bench, "orders", version=version)

    assert [row.node_id for row in answer.brokers] == [1]
    assert (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].leader_id) == (
        error,
        leader,
    )


@pytest.mark.parametrize("leader", [-1, 3])
def test_a_leader_that_is_not_alive_is_not_available(leader: int) -> None:
    bench = Bench().start()
    update(bench, a_topic(p0=leader))

    row = metadata(bench, "orders").topics[0].partitions[0]

    assert (row.error_code, row.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_version_0_names_only_replicas_that_live_and_says_so() -> None:
    bench = Bench().start()
    update(bench, a_topic(p0=1))

    row = bench.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 0).topics[0].partitions[0]

    assert row.replica_nodes == (1, 2)
    assert row.error_code == ErrorCode.REPLICA_NOT_AVAILABLE


def test_no_topics_and_all_topics_are_told_apart_by_version() -> None:
    bench = Bench().start()
    update(bench, a_topic())

    assert [row.name for row in bench.ask(MetadataRequest(topics=[]), 0).topics] == ["orders"]
    assert bench.ask(MetadataRequest(topics=[]), 1).topics == []
    assert [row.name for row in bench.ask(MetadataRequest(topics=None), 1).topics] == ["orders"]


def test_internal_topics_are_marked() -> None:
    bench = Bench().start()
    update(bench, a_topic("__consumer_offsets"), a_topic("plain", topic_id=bytes(16)))

    assert {row.name: row.is_internal for row in metadata(bench).topics} == {
        "__consumer_offsets": True,
        "plain": False,
    }


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b@d", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_unknown_topics_and_names_that_are_none(name: str, error: ErrorCode) -> None:
    bench = Bench().start()
    update(bench)

    assert metadata(bench, name).topics[0].error_code == error


def test_the_topic_of_transactions_is_created_with_its_own_settings() -> None:
    """A broker of Apache's may coordinate transactions, and relies on what is kept there."""
    bench = Bench(a_config(num_partitions=4, transaction_state_log_min_isr=3)).start()
    update(bench, live_brokers=[a_broker(1), a_broker(2), a_broker(3)])

    metadata(bench, "__transaction_state", create=True)

    node = decode_topic("__transaction_state", bench.tree.nodes[paths.topic("__transaction_state")].data)
    assert len(node.partitions) == 50
    assert {len(assignment.replicas) for assignment in node.partitions.values()} == {3}
    settings = decode_config(bench.tree.nodes["/config/topics/__transaction_state"].data)
    assert settings.config == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "3",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_a_missing_topic_is_created_in_zookeeper_and_the_client_told_to_look_again() -> None:
    bench = Bench(a_config(num_partitions=4)).start()
    update(bench, live_brokers=[a_broker(1), a_broker(2)])

    answer = metadata(bench, "fresh", create=True)

    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    node = decode_topic("fresh", bench.tree.nodes[paths.topic("fresh")].data)
    assert sorted(node.partitions) == [0, 1, 2, 3]
    assert {assignment.replicas[0] for assignment in node.partitions.values()} == {1, 2}
    assert node.topic_id is not None
    assert bench.tree.nodes[paths.config_entity("topics", "fresh")].data == b'{"version":1,"config":{}}'


def test_creation_needs_the_brokers_will_the_clients_will_and_enough_brokers() -> None:
    unwilling = Bench(a_config(auto_create_topics_enable="false")).start()
    update(unwilling)
    assert metadata(unwilling, "x", create=True).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    bench = Bench(a_config(default_replication_factor=3)).start()
    update(bench)
    assert metadata(bench, "x", create=False).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert metadata(bench, "x", create=True).topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert paths.topic("x") not in bench.tree.nodes


def test_a_name_that_differs_in_dots_and_underscores_alone_is_not_created() -> None:
    bench = Bench().start()
    update(bench, a_topic("a.b"))

    assert metadata(bench, "a_b", create=True).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_is_being_created_is_created_once() -> None:
    bench = Bench().start()
    update(bench)
    bench.zk_is_held = True

    for _ in range(3):
        assert metadata(bench, "x", create=True).topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE

    assert len(bench.held) == 1


def test_describe_cluster_shows_the_brokers_of_the_listener() -> None:
    bench = Bench().start()
    update(bench, live_brokers=[a_broker(1, rack="r1"), a_broker(2, "INSIDE")])

    answer = bench.ask(DescribeClusterRequest(), 1)

    assert [(row.broker_id, row.host, row.rack) for row in answer.brokers] == [(1, "host1", "r1")]
    assert answer.controller_id == 2
    assert answer.cluster_id == bench.node.identity.cluster_id


@pytest.mark.parametrize("version", range(9))
def test_every_version_of_update_metadata_is_understood(version: int) -> None:
    bench = Bench().start()
    state = a_topic().partition_states[0]
    state.topic_name = "orders"
    request = UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=3,
        ungrouped_partition_states=[state] if version < 5 else [],
        topic_states=[a_topic()] if version >= 5 else [],
        live_brokers=[
            UpdateMetadataBroker(
                id=1,
                v0_host="h",
                v0_port=5,
                endpoints=[UpdateMetadataEndpoint(port=5, host="h", listener="PLAINTEXT")],
            )
        ],
    )

    assert bench.ask(request, version).error_code == ErrorCode.NONE

    endpoint = bench.node.metadata.brokers[1].endpoints["PLAINTEXT"]  # type: ignore[index]
    assert (endpoint.host, endpoint.port) == ("h", 5)
    assert bench.node.metadata.topics["orders"].partitions[0].leader == 1
