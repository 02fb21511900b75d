"""An Ottla broker in a cluster of Apache Kafka 3.9: the controller and the tools take it for Kafka."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from support.processes.apache import ApacheCluster, apache_cluster
from support.processes.apache_tools import run_main
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java]

RECORDS = 2_000


class Mixed:
    """One Apache broker, which is the controller, and one of ours."""

    def __init__(self, apache: ApacheCluster, ottla: OttlaBroker) -> None:
        self.apache = apache
        self.ottla = ottla
        self.admin = AdminClient({"bootstrap.servers": ottla.address, "log_level": 0})
        self.at_apache = AdminClient({"bootstrap.servers": apache.bootstrap, "log_level": 0})

    def create(self, topic: str, partitions: int, replication_factor: int) -> None:
        """Through Apache, and until Ottla knows all leaders."""
        self.at_apache.create_topics([NewTopic(topic, partitions, replication_factor)])[topic].result(30)
        wait_until(lambda: len(self.leaders(topic)) == partitions, f"{topic} has leaders", 30)

    def leaders(self, topic: str) -> dict[int, int]:
        """By Ottla's own Metadata."""
        found = self.admin.list_topics(topic, timeout=30).topics[topic]
        return {number: row.leader for number, row in found.partitions.items() if row.leader >= 0}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    directory = tmp_path_factory.mktemp("mixed")
    with apache_cluster(directory, size=1, first_id=0) as apache:
        ottla = OttlaBroker(1, apache.zk_connect, log_dir=directory / "ottla" / "data")
        try:
            ottla.start({0, 1})
            apache.brokers[0].wait_usable({0, 1})
            yield Mixed(apache, ottla)
        finally:
            ottla.stop()


def test_the_registration_has_the_keys_and_types_of_apaches(mixed: Mixed) -> None:
    kazoo = KazooClient(mixed.apache.zk_connect)
    kazoo.start(timeout=15)
    try:
        (theirs, their_stat), (ours, our_stat) = (kazoo.get(f"/brokers/ids/{broker}") for broker in (0, 1))
    finally:
        kazoo.stop()
        kazoo.close()

    apache, ottla = json.loads(theirs), json.loads(ours)
    assert {key: type(value) for key, value in ottla.items()} == {
        key: type(value) for key, value in apache.items()
    }
    same = ("features", "listener_security_protocol_map", "jmx_port", "version", "host")
    assert {key: ottla[key] for key in same} == {key: apache[key] for key in same}
    assert ottla["endpoints"] == [f"PLAINTEXT://{mixed.ottla.address}"]
    assert our_stat.version == their_stat.version == 1


def test_both_brokers_tell_the_same_of_the_cluster(mixed: Mixed) -> None:
    ours, theirs = mixed.admin.list_topics(timeout=30), mixed.at_apache.list_topics(timeout=30)

    assert ours.cluster_id == theirs.cluster_id
    assert ours.controller_id == theirs.controller_id == 0
    assert {broker: (row.host, row.port) for broker, row in ours.brokers.items()} == {
        broker: (row.host, row.port) for broker, row in theirs.brokers.items()
    }


def test_records_go_through_a_cluster_of_both(mixed: Mixed) -> None:
    mixed.create("both", partitions=4, replication_factor=2)
    assert set(mixed.leaders("both").values()) == {0, 1}
    failures: list[str] = []
    producer = Producer(
        {"bootstrap.servers": mixed.ottla.address, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
    )
    for number in range(RECORDS):
        producer.produce(
            "both",
            b"%d" % number,
            key=b"%d" % number,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    assert producer.flush(60) == 0
    assert failures == []

    consumer = Consumer({"bootstrap.servers": mixed.ottla.address, "group.id": "unused", "log_level": 0})
    consumer.assign([TopicPartition("both", number, 0) for number in range(4)])
    seen: set[bytes] = set()

    def has_all() -> bool:
        seen.update(message.value() for message in consumer.consume(500, 0.2) if not message.error())
        return len(seen) == RECORDS

    wait_until(has_all, "every record is read", 60)
    consumer.close()


def test_a_topic_that_a_client_of_ottla_names_is_created(mixed: Mixed) -> None:
    mixed.admin.list_topics("named", timeout=30)

    wait_until(lambda: mixed.leaders("named") != {}, "the topic has a leader", 30)


def test_apaches_tools_work_on_ottlas_port(mixed: Mixed) -> None:
    mixed.create("tooled", partitions=2, replication_factor=2)
    bootstrap = ("--bootstrap-server", mixed.ottla.address)

    versions = run_main("kafka.admin.BrokerApiVersionsCommand", *bootstrap)
    assert versions.exit_code == 0
    assert f"{mixed.ottla.address} (id: 1 rack: null) -> (" in versions.stdout
    described = run_main("org.apache.kafka.tools.TopicCommand", *bootstrap, "--describe", "--topic", "tooled")
    assert described.exit_code == 0
    assert "PartitionCount: 2\tReplicationFactor: 2" in described.stdout


def test_settings_altered_at_ottla_hold_at_apache_and_the_other_way_round(mixed: Mixed) -> None:
    mixed.create("set", partitions=1, replication_factor=2)
    command = "kafka.admin.ConfigCommand"

    at_ottla = ("--bootstrap-server", mixed.ottla.address)
    done = run_main(command, *at_ottla, "--alter", "--topic", "set", "--add-config", "retention.ms=86400001")
    assert done.exit_code == 0, done.stderr
    shown = run_main(command, "--bootstrap-server", mixed.apache.bootstrap, "--describe", "--topic", "set")
    assert "retention.ms=86400001" in shown.stdout
    run_main(
        command,
        "--bootstrap-server",
        mixed.apache.bootstrap,
        *("--alter", "--topic", "set", "--add-config", "max.message.bytes=1234567"),
    )

    wait_until(
        lambda: "'max.message.bytes': '1234567'" in mixed.ottla.log_text(), "Ottla hears of the change", 30
    )


def test_a_controlled_shutdown_moves_leaderships_before_the_end(mixed: Mixed) -> None:
    mixed.create("moved", partitions=4, replication_factor=2)
    assert 1 in mixed.leaders("moved").values()

    code = mixed.ottla.shut_down()

    assert code == 0
    assert "controlled shutdown succeeded broker=1" in mixed.ottla.log_text()

    def leaders_at_apache() -> set[int]:
        found = mixed.at_apache.list_topics("moved", timeout=30).topics["moved"]
        return {row.leader for row in found.partitions.values()}

    wait_until(lambda: leaders_at_apache() == {0}, lambda: f"Apache leads alone: {leaders_at_apache()}", 30)
    mixed.ottla.start({0, 1})
    wait_until(
        lambda: all(
            sorted(row.isrs) == [0, 1]
            for row in mixed.at_apache.list_topics("moved", timeout=30).topics["moved"].partitions.values()
        ),
        "the broker is in sync again",
        60,
    )
