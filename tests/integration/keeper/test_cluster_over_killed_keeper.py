"""A cluster whose keeper is killed again and again: brokers go on in their sessions, and nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from kazoo.client import KazooClient

from ottla.launch.zookeeper.keeper import EmbeddedKeeper
from ottla.testing.cluster import ClusterUnderTest, start_cluster

PARTITIONS = 3
SETTINGS = {"zookeeper.session.timeout.ms": "30000"}


class Load:
    """Produces until it is ended; knows what was acknowledged."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failed: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 1})
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_ended.is_set():
            self._producer.produce(self._topic, b"%d" % number, on_delivery=self._told)
            self._producer.poll(0.002)
            number += 1

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acknowledged[message.value()] = message.partition(), message.offset()

    def end(self) -> None:
        self._is_ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def owners(connect: str) -> dict[str, int]:
    """The session of each broker."""
    client = KazooClient(connect)
    client.start(timeout=30)
    try:
        names = client.get_children("/brokers/ids")
        return {name: client.exists(f"/brokers/ids/{name}").owner_session_id for name in names}
    finally:
        client.stop()
        client.close()


def all_records(bootstrap_servers: str, topic: str) -> dict[bytes, tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "all"})
    found: dict[bytes, tuple[int, int]] = {}
    try:
        for number in range(PARTITIONS):
            place = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            while len([1 for partition, _ in found.values() if partition == number]) < end:
                message = consumer.poll(30)
                assert message is not None, "a record below the high watermark does not come"
                assert message.error() is None, message.error()
                found[message.value()] = number, message.offset()
    finally:
        consumer.close()
    return found


def kill_keeper(ottla: ClusterUnderTest, random: Random) -> None:
    """At any moment, also while the controller writes a new topic; afterwards topics can be made again."""
    keeper = ottla.cluster.zookeeper
    assert isinstance(keeper, EmbeddedKeeper)
    busy = threading.Thread(target=ottla.topic, kwargs={"partitions": 10})
    busy.start()
    threading.Event().wait(random.uniform(0, 0.2))  # a random moment is what the test is about
    keeper.kill()
    keeper.start()
    busy.join()
    assert ottla.topic()


@pytest.mark.long
def test_brokers_go_on_over_a_keeper_that_is_killed_fifty_times(tmp_path: Path) -> None:
    random = Random(1)
    with start_cluster(3, settings=SETTINGS, data_dir=tmp_path, zookeeper="keeper") as ottla:
        topic = ottla.topic(partitions=PARTITIONS, configs={"min.insync.replicas": "2"})
        pids = [broker.pid for broker in ottla.cluster.brokers]
        sessions = owners(ottla.zookeeper_connect)
        load = Load(ottla.bootstrap_servers, topic)
        try:
            for _ in range(50):
                kill_keeper(ottla, random)
        finally:
            load.end()

        assert [broker.pid for broker in ottla.cluster.brokers] == pids
        assert owners(ottla.zookeeper_connect) == sessions, "a session was lost"
        assert load.failed == []
        assert len(load.acknowledged) > 1_000, "there was load"
        found = all_records(ottla.bootstrap_servers, topic)
        assert {value: found.get(value) for value in load.acknowledged} == load.acknowledged
