"""Kafka's znodes: what Apache writes is read, what we write is what Apache reads, and nothing is dropped."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.cluster import BrokerRegistration, Endpoint, SecurityProtocol
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition, topic_id_text
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from ottla.znodes import codec, codec_config
from ottla.znodes.codec import ControllerNode, MalformedZnode, TopicNode
from ottla.znodes.codec_config import ConfigNode, FeatureNode, ProducerIdBlock

FEW = settings(max_examples=25, deadline=None)
brokers = st.integers(0, 2**31 - 1).map(BrokerId)
broker_lists = st.lists(brokers, max_size=4, unique=True).map(tuple)
topics = st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
epochs = st.integers(0, 2**31 - 2)
endpoints = st.builds(
    Endpoint,
    st.from_regex(r"[A-Z][A-Z0-9_]{0,10}", fullmatch=True),
    st.sampled_from(["localhost", "10.0.0.1", "::1", "kafka.example.org"]),
    st.integers(1, 65535),
    st.sampled_from(SecurityProtocol),
)
registrations = st.builds(
    BrokerRegistration,
    brokers,
    st.integers(0, 2**62),
    st.lists(endpoints, min_size=1, max_size=3, unique_by=lambda e: e.listener).map(tuple),
    st.none() | texts,
    st.dictionaries(topics, st.tuples(epochs, epochs), max_size=2),
)
states = st.builds(
    LeaderAndIsr,
    brokers,
    epochs.map(LeaderEpoch),
    broker_lists,
    st.integers(0, 2**31 - 1),
    epochs,
    st.sampled_from(LeaderRecoveryState),
)
partitions = st.builds(TopicPartition, topics, st.integers(0, 10_000))
topic_nodes = st.builds(
    TopicNode,
    st.none() | st.binary(min_size=16, max_size=16).map(TopicId),
    st.dictionaries(
        st.integers(0, 500),
        st.builds(ReplicaAssignment, broker_lists, broker_lists, broker_lists),
        max_size=4,
    ),
    st.dictionaries(
        st.sampled_from(["future", "x"]), st.integers() | texts | st.lists(st.booleans()), max_size=2
    ),
)


@FEW
@given(registrations, st.integers(0, 2**45))
def test_a_registration_survives_the_way_through_json(registration: BrokerRegistration, now_ms: int) -> None:
    data = codec.encode_broker(registration, now_ms)

    assert codec.decode_broker(registration.broker, data, registration.epoch) == registration


def test_a_registration_has_apaches_keys_and_types() -> None:
    registration = BrokerRegistration(
        BrokerId(1),
        0,
        (Endpoint("SECURE", "h", 9093, SecurityProtocol.SASL_SSL), Endpoint("PLAINTEXT", "h", 9092)),
    )

    assert json.loads(codec.encode_broker(registration, 1_700_000_000_000)) == {
        "features": {},
        "listener_security_protocol_map": {"SECURE": "SASL_SSL", "PLAINTEXT": "PLAINTEXT"},
        "endpoints": ["SECURE://h:9093", "PLAINTEXT://h:9092"],
        "jmx_port": -1,
        "port": 9092,
        "host": "h",
        "version": 5,
        "timestamp": "1700000000000",
    }


def test_a_registration_without_a_plaintext_endpoint_has_no_host_for_old_clients() -> None:
    registration = BrokerRegistration(
        BrokerId(1), 0, (Endpoint("SSL", "h", 9, SecurityProtocol.SSL),), "rack-1"
    )

    node = json.loads(codec.encode_broker(registration, 0))

    assert (node["host"], node["port"], node["rack"]) == (None, -1, "rack-1")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"version":1,"host":"h","port":9092,"jmx_port":-1}', ((Endpoint("PLAINTEXT", "h", 9092)),)),
        (
            b'{"version":2,"endpoints":["SSL://h:9"],"host":null,"port":-1,"jmx_port":-1,"timestamp":"1"}',
            (Endpoint("SSL", "h", 9, SecurityProtocol.SSL),),
        ),
        (
            b'{"version":4,"endpoints":["IN://[::1]:9"],"listener_security_protocol_map":{"IN":"PLAINTEXT"},'
            b'"host":"h","port":9,"jmx_port":-1,"timestamp":"1","news":{}}',
            (Endpoint("IN", "::1", 9),),
        ),
    ],
)
def test_registrations_of_older_versions_are_read(data: bytes, expected: tuple[Endpoint, ...]) -> None:
    assert codec.decode_broker(BrokerId(3), data, 9) == BrokerRegistration(BrokerId(3), 9, expected)


@FEW
@given(topic_nodes)
def test_a_topic_survives_the_way_through_json_with_keys_that_we_do_not_know(topic: TopicNode) -> None:
    assert codec.decode_topic("t", codec.encode_topic(topic)) == topic


def test_a_rewritten_topic_keeps_its_id_and_only_reassigned_partitions_are_named() -> None:
    topic_id = TopicId(bytes(range(16)))
    apache = json.dumps(
        {
            "partitions": {"0": [1, 2], "1": [2, 1]},
            "topic_id": topic_id_text(topic_id),
            "adding_replicas": {},
            "removing_replicas": {},
            "version": 3,
            "of_a_later_kafka": [1],
        }
    ).encode()

    node = codec.decode_topic("t", apache)
    node.partitions[1] = ReplicaAssignment(
        (BrokerId(3), BrokerId(2), BrokerId(1)), (BrokerId(3),), (BrokerId(1),)
    )
    written = json.loads(codec.encode_topic(node))

    assert written["topic_id"] == topic_id_text(topic_id)
    assert written["of_a_later_kafka"] == [1]
    assert (written["adding_replicas"], written["removing_replicas"]) == ({"1": [3]}, {"1": [1]})


def test_a_topic_from_before_topic_ids_is_read_without_one() -> None:
    node = codec.decode_topic("t", b'{"version":1,"partitions":{"0":[1]}}')

    assert node == TopicNode(None, {0: ReplicaAssignment((BrokerId(1),))})
    assert "topic_id" not in json.loads(codec.encode_topic(node))


@FEW
@given(states)
def test_a_partition_state_survives_the_way_through_json(state: LeaderAndIsr) -> None:
    assert codec.decode_partition_state(codec.encode_partition_state(state), state.partition_epoch) == state


def test_a_partition_state_has_apaches_keys_and_mentions_recovery_only_while_recovering() -> None:
    state = LeaderAndIsr(BrokerId(1), LeaderEpoch(0), (BrokerId(1), BrokerId(0)), 7, 3)
    expected = {"controller_epoch": 3, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1, 0]}
    recovering = LeaderAndIsr(BrokerId(1), LeaderEpoch(0), (), 7, 3, LeaderRecoveryState.RECOVERING)

    assert json.loads(codec.encode_partition_state(state)) == expected
    assert json.loads(codec.encode_partition_state(recovering))["leader_recovery_state"] == 1


def test_a_rewritten_partition_state_keeps_unknown_keys_but_not_an_old_recovery() -> None:
    previous = (
        b'{"version":1,"leader":2,"leader_epoch":1,"isr":[2],"controller_epoch":1,'
        b'"leader_recovery_state":1,"z":5}'
    )
    state = LeaderAndIsr(BrokerId(1), LeaderEpoch(2), (BrokerId(1),), 7, 3)

    written = json.loads(codec.encode_partition_state(state, previous))

    assert (written["z"], written["leader"], "leader_recovery_state" in written) == (5, 1, False)


@FEW
@given(brokers, st.integers(0, 2**45))
def test_the_controller_survives_the_way_through_json(broker: BrokerId, now_ms: int) -> None:
    data = codec.encode_controller(broker, now_ms)

    assert codec.decode_controller(data) == ControllerNode(broker, -1)
    assert json.loads(data) == {
        "version": 2,
        "brokerid": broker,
        "timestamp": str(now_ms),
        "kraftControllerEpoch": -1,
    }


def test_an_older_controller_node_needs_only_the_broker() -> None:
    assert codec.decode_controller(b'{"version":1,"brokerid":4}') == ControllerNode(BrokerId(4), -1)


@FEW
@given(st.integers(0, 2**31 - 2))
def test_the_controller_epoch_is_plain_decimal_text(epoch: int) -> None:
    assert codec.encode_controller_epoch(epoch) == str(epoch).encode()
    assert codec.decode_controller_epoch(str(epoch).encode()) == epoch


def test_the_cluster_id_has_its_version_as_text() -> None:
    data = codec.encode_cluster_id("abcdefghijklmnopqrstuv")

    assert json.loads(data) == {"version": "1", "id": "abcdefghijklmnopqrstuv"}
    assert codec.decode_cluster_id(data) == "abcdefghijklmnopqrstuv"


@FEW
@given(st.lists(partitions, max_size=4).map(tuple))
def test_lists_of_partitions_survive_the_way_through_json(listed: tuple[TopicPartition, ...]) -> None:
    assert codec.decode_partitions(codec.encode_partitions(listed)) == listed


@FEW
@given(st.dictionaries(partitions, broker_lists, max_size=4))
def test_a_reassignment_survives_the_way_through_json(
    moves: dict[TopicPartition, tuple[BrokerId, ...]],
) -> None:
    assert codec.decode_reassignment(codec.encode_reassignment(moves)) == moves


@FEW
@given(st.dictionaries(texts, texts), st.dictionaries(st.sampled_from(["later"]), st.integers(), max_size=1))
def test_settings_survive_the_way_through_json(config: dict[str, str], other: dict[str, Any]) -> None:
    node = ConfigNode(config, other)

    assert codec_config.decode_config(codec_config.encode_config(node)) == node


def test_an_entity_without_data_has_no_settings() -> None:
    assert codec_config.decode_config(None) == codec_config.decode_config(b"") == ConfigNode({})


@pytest.mark.parametrize(
    ("data", "entity"),
    [
        (b'{"version":2,"entity_path":"users/u/clients/c"}', "users/u/clients/c"),
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "topics/t"),
        (codec_config.encode_config_change("brokers/<default>"), "brokers/<default>"),
    ],
)
def test_both_versions_of_a_config_change_name_their_entity(data: bytes, entity: str) -> None:
    assert codec_config.decode_config_change(data) == entity


def test_a_log_dir_event_names_the_broker() -> None:
    data = codec_config.encode_log_dir_event(BrokerId(7))

    assert json.loads(data) == {"version": 1, "broker": 7, "event": 1}
    assert codec_config.decode_log_dir_event(data) == 7


def test_producer_ids_are_written_as_text_and_absent_at_first() -> None:
    block = ProducerIdBlock(BrokerId(2), 1000, 1999)
    data = codec_config.encode_producer_id_block(block)

    assert json.loads(data) == {"version": 1, "broker": 2, "block_start": "1000", "block_end": "1999"}
    assert codec_config.decode_producer_id_block(data) == block
    assert codec_config.decode_producer_id_block(None) is None


@FEW
@given(st.booleans(), st.dictionaries(texts, st.integers(0, 30_000)))
def test_features_survive_the_way_through_json(is_enabled: bool, features: dict[str, int]) -> None:
    node = FeatureNode(2, is_enabled, features, {"later": [1]})

    assert codec_config.decode_feature(codec_config.encode_feature(node)) == node


def test_the_first_feature_node_is_apaches() -> None:
    assert json.loads(codec_config.encode_feature(FeatureNode())) == {
        "features": {},
        "version": 2,
        "status": 1,
    }


DECODERS: list[Callable[[bytes], object]] = [
    lambda data: codec.decode_broker(BrokerId(1), data, 1),
    lambda data: codec.decode_topic("t", data),
    lambda data: codec.decode_partition_state(data, 1),
    codec.decode_controller,
    codec.decode_controller_epoch,
    codec.decode_cluster_id,
    codec.decode_partitions,
    codec.decode_reassignment,
    codec_config.decode_config,
    codec_config.decode_config_change,
    codec_config.decode_log_dir_event,
    codec_config.decode_producer_id_block,
    codec_config.decode_feature,
]
KEYS = [
    "version",
    "brokerid",
    "id",
    "partitions",
    "topic_id",
    "topic",
    "partition",
    "replicas",
    "leader",
    "leader_epoch",
    "isr",
    "controller_epoch",
    "config",
    "entity_path",
    "broker",
    "block_start",
    "block_end",
    "status",
    "features",
    "endpoints",
    "host",
    "port",
    "name",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "0", "x"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@FEW
@given(st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()))
def test_a_damaged_znode_raises_nothing_but_the_one_declared_error(data: bytes) -> None:
    for decode in DECODERS:
        with contextlib.suppress(MalformedZnode):
            decode(data)


def test_a_znode_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(MalformedZnode):
        codec.decode_topic("t", b'{"partitions":' + b"[" * 100_000)
