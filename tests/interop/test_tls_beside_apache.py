"""TLS everywhere in a cluster of both kinds: between brokers, names verified, and with Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from support.processes.apache_tools import run_apache
from support.processes.broker_process import HOST, BrokerProcess
from support.processes.commands import run_here as run_ottla
from support.processes.ports import free_port
from support.running.waiting import wait_until
from support.security.broker import (
    ALICE,
    ALICES_PASSWORD,
    BROKERS_PASSWORD,
    BROKERS_USER,
    KINDS,
    PLAIN_MODULE,
    client_settings,
)
from support.security.tls import Files, files_in
from support.zookeeper.chroots import Chroots

pytestmark = [
    pytest.mark.apache,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.full("a cluster of both kinds of its own, and changes of its controller"),
]


@dataclass(frozen=True, slots=True)
class Mixed:
    """One Apache broker and one of Ottla's, and their doors with certificates alone."""

    brokers: list[BrokerProcess]
    doors: list[int]
    files: Files

    def librdkafka(self, number: int = 0, **more: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.brokers[number].address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files.ca),
            "sasl.mechanism": "PLAIN",
            "sasl.username": ALICE,
            "sasl.password": ALICES_PASSWORD,
            "log_level": "0",
            **more,
        }


@pytest.fixture(scope="module")
def mixed(chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    connect = chroots.make().connect
    files = files_in(tmp_path_factory.mktemp("tls"))
    doors = [free_port() for _ in range(2)]
    brokers = [
        a_broker(kind, number, connect, doors[number - 1], files)
        for number, kind in ((1, "apache"), (2, "ottla"))
    ]
    both = Mixed(brokers, doors, files)
    try:
        for broker in brokers:
            broker.launch()
        for number, broker in enumerate(brokers):
            wait_until(
                lambda n=number: known_to(both, n) == {1, 2}, f"broker {broker.broker_id} knows both", 180
            )
        yield both
    finally:
        for broker in brokers:
            broker.stop()


def a_broker(kind: str, broker_id: int, connect: str, door: int, files: Files) -> BrokerProcess:
    port = free_port()
    own = f'username="{BROKERS_USER}" password="{BROKERS_PASSWORD}"'
    users = f'user_{BROKERS_USER}="{BROKERS_PASSWORD}" user_{ALICE}="{ALICES_PASSWORD}"'
    settings = {
        "listeners": f"INSIDE://{HOST}:{port},DOOR://{HOST}:{door}",
        "listener.security.protocol.map": "INSIDE:SASL_SSL,DOOR:SSL",
        "inter.broker.listener.name": "INSIDE",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.inside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.inside.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {own} {users};",
        "listener.name.door.ssl.client.auth": "required",
        **files.settings,
    }
    return KINDS[kind](broker_id, connect, port, **settings)


def seen_by(mixed: Mixed, number: int):  # type: ignore[no-untyped-def]
    return AdminClient(mixed.librdkafka(number)).list_topics(timeout=10)


def known_to(mixed: Mixed, number: int) -> set[int]:
    broker = mixed.brokers[number]
    assert broker.is_running, broker.log_tail()
    try:
        return set(seen_by(mixed, number).brokers)
    except KafkaException:
        return set()


def become_controller(mixed: Mixed, wanted: int) -> None:
    client = KazooClient(hosts=mixed.brokers[0].zk_connect)
    client.start(timeout=15)
    try:

        def is_it() -> bool:
            if client.exists("/controller") is None:
                return False
            if f'"brokerid":{wanted},'.encode() in client.get("/controller")[0]:
                return True
            client.delete("/controller")
            return False

        wait_until(is_it, f"broker {wanted} becomes controller", 60)
        for number in (0, 1):
            wait_until(lambda n=number: seen_by(mixed, n).controller_id == wanted, "all have heard of it", 60)
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("controller", [1, 2])
def test_brokers_of_both_kinds_lead_follow_and_are_led_over_tls(mixed: Mixed, controller: int) -> None:
    become_controller(mixed, controller)
    topic = f"under-{controller}"
    new = NewTopic(
        topic, num_partitions=2, replica_assignment=[[1, 2], [2, 1]], config={"min.insync.replicas": "2"}
    )
    admin = AdminClient(mixed.librdkafka())
    admin.create_topics([new])[topic].result(timeout=60)
    producer = Producer(mixed.librdkafka(acks="all"))
    errors: list[KafkaError | None] = []
    for partition in (0, 1):
        for number in range(50):
            value = f"{partition}-{number}".encode()
            producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(60) == 0
    assert errors == [None] * 100

    consumer = Consumer(mixed.librdkafka(1, **{"group.id": topic, "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    read: set[bytes | None] = set()

    def read_more() -> int:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read.add(message.value())
        return len(read)

    wait_until(lambda: read_more() == 100, "all records are read", 60)
    consumer.close()


@pytest.mark.parametrize("number", [0, 1])
def test_kafkas_tools_and_ours_come_in_with_certificates_and_with_passwords(
    mixed: Mixed, number: int, tmp_path: Path
) -> None:
    topic = f"tools-{number}"
    by_name = {**client_settings("PLAIN", ALICE, ALICES_PASSWORD), **mixed.files.client_settings("SASL_SSL")}
    ways = {f"{HOST}:{mixed.doors[number]}": mixed.files.as_alice(), mixed.brokers[number].address: by_name}
    for way, (address, settings) in enumerate(ways.items()):
        file = tmp_path / f"{way}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        to = ("--bootstrap-server", address)
        theirs = run_apache(
            "topics", *to, "--command-config", str(file), "--create", "--topic", f"{topic}-{way}"
        )
        assert theirs.exit_code == 0, theirs
        written = run_apache(
            "console-producer",
            *to,
            "--producer.config",
            str(file),
            "--topic",
            f"{topic}-{way}",
            stdin="one\n",
        )
        assert written.exit_code == 0, written
        read = (
            "--topic",
            f"{topic}-{way}",
            "--from-beginning",
            "--max-messages",
            "1",
            "--timeout-ms",
            "60000",
        )
        theirs = run_apache("console-consumer", *to, "--consumer.config", str(file), *read)
        ours = run_ottla("console-consumer", *to, "--consumer.config", str(file), *read)
        assert (theirs.exit_code, ours.exit_code) == (0, 0), (theirs, ours)
        assert theirs.stdout.splitlines()[0] == ours.stdout.splitlines()[0] == "one"


def test_who_shows_no_certificate_or_a_wrong_name_does_not_come_in(mixed: Mixed) -> None:
    for door in mixed.doors:
        admin = AdminClient(
            {
                "bootstrap.servers": f"{HOST}:{door}",
                "security.protocol": "SSL",
                "ssl.ca.location": str(mixed.files.ca),
                "log_level": "0",
            }
        )
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=3)
