"""Clusters that nobody enters without a login, brokers included: Ottla's and Apache's, side by side.

The users are made before any broker runs, by Kafka's tool and by ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from support.processes.apache_tools import run_apache
from support.processes.broker_process import BrokerProcess
from support.processes.commands import run_here as run_ottla
from support.running.waiting import wait_until
from support.security.broker import (
    ALICE,
    ALICES_PASSWORD,
    BROKERS_PASSWORD,
    BROKERS_USER,
    client_settings,
    closed_broker,
)
from support.security.talk import ByHand, Talk
from support.zookeeper.chroots import Chroots

pytestmark = [
    pytest.mark.apache,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.full("a cluster of both kinds of its own, and changes of its controller"),
]

MECHANISM = "SCRAM-SHA-512"


def librdkafka(address: str, user: str, password: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


@pytest.fixture(scope="module")
def mixed(chroots: Chroots) -> Iterator[list[BrokerProcess]]:
    """One Apache broker and one of Ottla's, which log in with each other."""
    connect = chroots.make().connect
    for_users = ("--alter", "--entity-type", "users", "--entity-name")
    ours = run_ottla(
        "configs", "--zookeeper", connect, *for_users, BROKERS_USER,
        "--add-config", f"{MECHANISM}=[iterations=8192,password={BROKERS_PASSWORD}]",
    )  # fmt: skip
    assert ours.stdout == f"Completed updating config for entity: user-principal '{BROKERS_USER}'.\n"
    theirs = run_apache(
        "configs", "--zookeeper", connect, *for_users, ALICE,
        "--add-config", f"{MECHANISM}=[password={ALICES_PASSWORD}]",
    )  # fmt: skip
    assert theirs.exit_code == 0, theirs
    brokers = [
        closed_broker(kind, number, connect, MECHANISM) for number, kind in ((1, "apache"), (2, "ottla"))
    ]
    try:
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            wait_until(lambda b=broker: known_to(b) == {1, 2}, f"broker {broker.broker_id} knows both", 180)
        yield brokers
    finally:
        for broker in brokers:
            broker.stop()


def controller_of(broker: BrokerProcess) -> int:
    admin = AdminClient(librdkafka(broker.address, BROKERS_USER, BROKERS_PASSWORD))
    return int(admin.list_topics(timeout=30).controller_id)


def known_to(broker: BrokerProcess) -> set[int]:
    assert broker.is_running, broker.log_tail()
    admin = AdminClient(librdkafka(broker.address, BROKERS_USER, BROKERS_PASSWORD))
    try:
        return set(admin.list_topics(timeout=5).brokers)
    except KafkaException:
        return set()


@pytest.mark.parametrize("controller", [1, 2])
def test_brokers_of_both_kinds_lead_follow_and_are_led_behind_a_login(
    mixed: list[BrokerProcess], controller: int, tmp_path: Path
) -> None:
    become_controller(mixed, controller)
    topic = f"under-{controller}"
    address = mixed[0].address
    admin = AdminClient(librdkafka(address, ALICE, ALICES_PASSWORD))
    new = NewTopic(topic, num_partitions=2, replica_assignment=[[1, 2], [2, 1]])
    admin.create_topics([new])[topic].result(timeout=60)
    producer = Producer(librdkafka(address, ALICE, ALICES_PASSWORD, acks="all"))
    errors: list[KafkaError | None] = []

    for partition in (0, 1):
        for number in range(50):
            value = f"{partition}-{number}".encode()
            producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(60) == 0

    assert errors == [None] * 100
    reader = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(librdkafka(address, ALICE, ALICES_PASSWORD, **reader))
    consumer.subscribe([topic])
    read: set[bytes | None] = set()
    wait_until(lambda: read_more(consumer, read) == 100, "all records are read", 60)
    consumer.close()
    properties = tmp_path / "client.properties"
    settings = client_settings(MECHANISM, ALICE, ALICES_PASSWORD)
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    words = ("--bootstrap-server", mixed[1].address, "--command-config", str(properties))
    described = run_ottla("topics", *words, "--describe", "--topic", topic)
    assert described.stdout.count("Isr: 1,2") + described.stdout.count("Isr: 2,1") == 2, described


def become_controller(brokers: list[BrokerProcess], wanted: int) -> None:
    client = KazooClient(hosts=brokers[0].zk_connect)
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
        for broker in brokers:
            wait_until(lambda b=broker: controller_of(b) == wanted, f"{broker.kind} has heard of it", 60)
    finally:
        client.stop()
        client.close()


def read_more(consumer: Consumer, read: set[bytes | None]) -> int:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        read.add(message.value())
    return len(read)


def test_apaches_tool_and_ours_change_users_and_both_kinds_of_brokers_obey(
    mixed: list[BrokerProcess], tmp_path: Path
) -> None:
    properties = tmp_path / "admin.properties"
    settings = client_settings(MECHANISM, BROKERS_USER, BROKERS_PASSWORD)
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    at = [("--bootstrap-server", broker.address, "--command-config", str(properties)) for broker in mixed]
    for_users = ("--alter", "--entity-type", "users", "--entity-name")

    theirs = run_apache("configs", *at[1], *for_users, "erin", "--add-config", f"{MECHANISM}=[password=e-1]")
    ours = run_ottla("users", "add", "frank", *at[0], "--mechanism", MECHANISM, "--password", "f-1")

    assert theirs.exit_code == 0, theirs
    assert ours.exit_code == 0, ours
    for user, password in (("erin", "e-1"), ("frank", "f-1")):
        for broker in mixed:
            wait_until(
                lambda b=broker, u=user, p=password: is_let_in(b, u, p), f"{broker.kind} lets {user} in", 60
            )
    listed = run_ottla("users", "list", *at[1])
    described = run_ottla("configs", *at[0], "--describe", "--entity-type", "users")
    for user in ("erin", "frank", ALICE, BROKERS_USER):
        assert user in listed.stdout
        assert f"'{user}' are {MECHANISM}=iterations=" in described.stdout
    removed = run_ottla("users", "remove", "erin", *at[0])
    assert removed.exit_code == 0, removed
    for broker in mixed:
        wait_until(
            lambda b=broker: not is_let_in(b, "erin", "e-1"), f"{broker.kind} lets erin in no more", 60
        )


def is_let_in(broker: BrokerProcess, user: str, password: str) -> bool:
    talk = Talk(broker.port)
    by_hand = ByHand(MECHANISM, user, password)
    try:
        talk.handshake(MECHANISM)
        if talk.authenticate(by_hand.first())[1] != 0:
            return False
        return bool(talk.authenticate(by_hand.final(talk.token))[1] == 0)
    finally:
        talk.close()
