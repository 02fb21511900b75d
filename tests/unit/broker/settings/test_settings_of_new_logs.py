"""A log begins with the settings of its own topic, not with those of one that had the same name."""

from typing import Any

import pytest

from ottla.broker.outputs import SubmitToZooKeeper
from ottla.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from ottla.znodes import paths
from ottla.znodes.codec_config import ConfigNode, encode_config, encode_config_change
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, Failed, MultiDone, MultiRead, SetData, ZkCode
from support.bench import node_bench
from support.bench.led_broker import CONTROLLER_EPOCH, ME, SECOND, TOPIC, LedBroker
from support.bench.node_bench import OPERATOR

PATH = paths.config_entity("topics", TOPIC)
NEW_ID = bytes(range(100, 116))
KEPT_FOR_A_SECOND = encode_config(ConfigNode({"retention.ms": "1000"}))
KEPT_FOR_EVER = encode_config(ConfigNode({"retention.ms": "-1"}))


class Broker(LedBroker):
    """Before it starts the topic is there, and keeps its records for a second."""

    def __init__(self) -> None:
        super().__init__(brokers=(ME,))

    def start(self) -> "Broker":
        if not self.tree.has_session(OPERATOR):
            self.tree.open_session(OPERATOR)
            for path in ("/config", "/config/topics"):
                self.tree.apply(Create(path), OPERATOR, 0)
            self.tree.apply(Create(PATH, KEPT_FOR_A_SECOND), OPERATOR, 0)
        super().start()
        return self

    def delete_topic(self) -> None:
        """The controller says so, twice, as it does."""
        self.tell_metadata(p0=-2)
        state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
        topic = StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])
        request = StopReplicaRequest(
            controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH, broker_epoch=-1, topic_states=[topic]
        )
        self.ask(request, 4)

    def make_topic_anew(self) -> None:
        """Another topic of the same name, which keeps its records for ever."""
        self.zk(Delete(PATH, ANY_VERSION))
        self.zk(Create(PATH, KEPT_FOR_EVER))
        self.topic_id = NEW_ID
        self.lead()

    def release(self) -> None:
        """ZooKeeper answers what it was asked, with what is there now."""
        self.zk_is_held = False
        held, self.held = self.held, []
        for submitted in held:
            self.answer(submitted)
        self.settle()

    def reads_of_settings(self) -> int:
        paths_read = [op.path for each in self.zk_log if isinstance(each, MultiRead) for op in each.ops]
        return paths_read.count(PATH)


def test_a_topic_made_anew_after_its_deletion_was_missed_has_its_own_settings() -> None:
    broker = Broker()
    broker.delete_topic()

    broker.make_topic_anew()

    assert broker.log.config.retention_ms == -1


def test_a_topic_made_anew_whose_deletion_nobody_told_has_its_own_settings() -> None:
    broker = Broker()

    broker.make_topic_anew()

    assert broker.log.config.retention_ms == -1


def a_question_for_settings(broker: Broker) -> None:
    resource = DescribeConfigsResource(resource_type=2, resource_name=TOPIC, configuration_keys=None)
    broker.send(broker.connect(), DescribeConfigsRequest(resources=[resource]), 4)


def a_note_of_a_change(broker: Broker) -> None:
    broker.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(f"topics/{TOPIC}"), sequential=True))


@pytest.mark.parametrize("occasion", [a_question_for_settings, a_note_of_a_change])
def test_settings_that_are_heard_of_after_a_deletion_are_not_kept(occasion: Any) -> None:
    broker = Broker()
    broker.lead()
    assert broker.log.config.retention_ms == 1_000
    broker.zk_is_held = True
    occasion(broker)

    broker.delete_topic()
    broker.release()

    assert broker.node.configs.unread([TOPIC]) == [TOPIC]
    broker.make_topic_anew()
    assert broker.log.config.retention_ms == -1


def test_a_change_before_the_first_metadata_counts() -> None:
    broker = Broker()
    broker.zk(SetData(PATH, KEPT_FOR_EVER, ANY_VERSION))
    a_note_of_a_change(broker)

    assert broker.node.configs.log_config(TOPIC).retention_ms == -1


def test_a_log_that_was_here_before_the_start_needs_no_second_look_at_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = Broker()
    before.lead()
    before.disk.kill()
    monkeypatch.setattr(node_bench, "CrashDisk", lambda _: before.disk)

    again = Broker()
    again.lead(is_new=False)

    assert again.reads_of_settings() == 1
    assert again.log.config.retention_ms == 1_000


def test_a_partition_that_changes_its_role_needs_no_second_look_at_its_settings() -> None:
    broker = Broker()
    broker.lead()
    count = broker.reads_of_settings()

    broker.lead()

    assert broker.reads_of_settings() == count


def held_read(broker: Broker) -> SubmitToZooKeeper:
    """The next thing that the node asks of ZooKeeper."""
    broker.settle()
    return broker.held.pop(0)


def test_an_answer_over_the_limit_is_asked_for_in_halves() -> None:
    broker = Broker()
    broker.lead()
    broker.zk_is_held = True
    answered: list[bool] = []
    topics = ["a", "b", TOPIC]
    reading = broker.node.configs.read_topics(topics)
    broker.node.runtime.own.spawn(reading, lambda _: answered.append(True))

    whole = held_read(broker)
    broker.node.on_zk_result(whole.token, Failed(ZkCode.MARSHALLING_ERROR))
    first = held_read(broker)
    broker.node.on_zk_result(first.token, Failed(ZkCode.MARSHALLING_ERROR))
    assert isinstance(first.operation, MultiRead)
    assert len(first.operation.ops) == 1
    broker.zk(SetData(PATH, KEPT_FOR_EVER, ANY_VERSION))
    broker.settle()
    broker.release()

    assert answered == [True]
    assert broker.node.configs.unread(topics) == []
    assert broker.log.config.retention_ms == -1


def test_a_log_is_not_made_before_its_topics_settings_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    broker.tell_metadata(p0=ME)
    broker.zk_is_held = True
    with pytest.raises(AssertionError, match="0 answers"):
        broker.assign(ME)
    refused = MultiDone((Failed(ZkCode.NO_AUTH),))
    broker.node.on_zk_result(held_read(broker).token, refused)

    broker.node.on_zk_result(held_read(broker).token, Failed(ZkCode.NO_AUTH))
    assert broker.partition is None
    assert any("settings cannot be read" in message for message in caplog.messages)

    broker.zk_is_held = False
    broker.advance(1_000)
    assert broker.log.config.retention_ms == 1_000


BY_HAND = [
    b"no json",
    b'{"version":1,"config":{"retention.ms":-1}}',
    b'{"version":1,"config":{"retention.ms":"ever"}}',
]


@pytest.mark.parametrize("content", BY_HAND)
def test_settings_that_somebody_spoilt_hold_as_they_were(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker()
    broker.lead()

    broker.zk(SetData(PATH, content, ANY_VERSION))
    a_note_of_a_change(broker)

    assert broker.log.config.retention_ms == 1_000
    assert "cannot be read entity=topics/orders" in caplog.text
    broker.zk(SetData(PATH, KEPT_FOR_EVER, ANY_VERSION))
    a_note_of_a_change(broker)
    assert broker.log.config.retention_ms == -1


def test_of_settings_that_somebody_spoilt_the_others_count() -> None:
    broker = Broker()
    broker.lead()

    spoilt = ConfigNode({"retention.ms": "ever", "segment.ms": "5000", "of.a.later.kafka": "yes"})
    broker.zk(SetData(PATH, encode_config(spoilt), ANY_VERSION))
    a_note_of_a_change(broker)

    assert (broker.log.config.retention_ms, broker.log.config.segment_ms) == (1_000, 5_000)


@pytest.mark.parametrize("content", BY_HAND)
def test_a_topic_of_which_only_spoilt_settings_are_known_keeps_every_record(content: bytes) -> None:
    """Also one that is made anew under a name whose settings were known."""
    broker = Broker()
    broker.delete_topic()

    broker.zk(SetData(PATH, content, ANY_VERSION))
    broker.topic_id = NEW_ID
    broker.lead()

    assert broker.log.config.retention_ms == -1
    assert not broker.log.config.is_compacted
    broker.zk(SetData(PATH, encode_config(ConfigNode({"retention.ms": "2000"})), ANY_VERSION))
    a_note_of_a_change(broker)
    assert broker.log.config.retention_ms == 2_000


@pytest.mark.parametrize("others", [{}, {"retention.ms": "1000", "retention.bytes": "5"}])
def test_a_topic_whose_policy_alone_cannot_be_read_keeps_every_record(others: dict[str, str]) -> None:
    """It may be a compacted one, whose oldest records are worth as much as its newest."""
    broker = Broker()
    broker.delete_topic()

    spoilt = ConfigNode({"cleanup.policy": "compat", "segment.ms": "5000", **others})
    broker.zk(SetData(PATH, encode_config(spoilt), ANY_VERSION))
    broker.topic_id = NEW_ID
    broker.lead()

    config = broker.log.config
    assert (config.retention_ms, config.retention_bytes, config.is_compacted) == (-1, -1, False)
    assert config.segment_ms == 5_000


def test_a_compacted_topic_whose_policy_somebody_spoilt_stays_one() -> None:
    broker = Broker()
    broker.zk(SetData(PATH, encode_config(ConfigNode({"cleanup.policy": "compact"})), ANY_VERSION))
    broker.lead()

    broker.zk(SetData(PATH, encode_config(ConfigNode({"cleanup.policy": "compat"})), ANY_VERSION))
    a_note_of_a_change(broker)

    assert broker.log.config.is_compacted
