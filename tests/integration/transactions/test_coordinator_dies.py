"""The coordinator of transactions dies: what was committed is read once, what was aborted never."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from integration.transactions.librdkafka import a_producer, fresh, read_to_end, write
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from support.running.waiting import wait_until
from support.wire.client import WireClient

TRANSACTION = 1


@pytest.fixture(autouse=True)
def _all_run(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        if not broker.is_running:
            cluster.start_broker(broker.broker_id)


def coordinator(cluster: Cluster, transactional_id: str) -> int:
    """The broker that coordinates a transactional id, as soon as one does."""

    def found() -> list[int]:
        alive = next(broker for broker in cluster.brokers if broker.is_running)
        with WireClient(alive.address) as client:
            answer = client.ask(FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION), 3)
            return [answer.node_id] if answer.error_code == 0 else []

    return wait_until(found, f"{transactional_id} has a coordinator")[0]


def persistently(step: Callable[[float], None]) -> None:
    """As librdkafka asks its users to: again as long as that may help."""

    def is_done() -> bool:
        try:
            step(10)
        except KafkaException as refused:
            if not refused.args[0].retriable():
                raise
            return False
        return True

    wait_until(is_done, "the transaction ends", 60)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_an_open_transaction_outlives_its_coordinator(cluster: Cluster, commit: bool) -> None:
    topic, name, servers = fresh("orders"), fresh("payments"), cluster.bootstrap_servers
    producer = a_producer(servers, name)
    producer.begin_transaction()
    write(producer, topic, ["a", "b"], partition=0)
    dead = coordinator(cluster, name)

    cluster.brokers[dead].kill()
    persistently(producer.commit_transaction if commit else producer.abort_transaction)
    producer.begin_transaction()
    write(producer, topic, ["c"], partition=0)
    persistently(producer.commit_transaction)

    expected = ["a", "b", "c"] if commit else ["c"]
    wait_until(lambda: read_to_end(servers, topic) == expected, "what was committed is read")
    cluster.start_broker(dead)
    wait_until(lambda: read_to_end(servers, topic) == expected, "and nothing else")


def test_every_transaction_is_whole_through_three_deaths(cluster: Cluster, long_form: bool) -> None:
    """The coordinator is killed right behind EndTxn's answer, when markers are on their way."""
    topic, name, servers = fresh("orders"), fresh("payments"), cluster.bootstrap_servers
    producer = a_producer(servers, name)
    kept: list[str] = []
    for number in range(30 if long_form else 3):
        for step in range(10):
            values = [f"{number}-{step}-{each}" for each in range(3)]
            if transact(producer, topic, values, commit=step % 3 != 0):
                kept += values
        dead = coordinator(cluster, name)
        cluster.brokers[dead].kill()
        wait_until(lambda old=dead: coordinator(cluster, name) != old, "another broker coordinates")
        cluster.start_broker(dead)

    wait_until(lambda: read_to_end(servers, topic) == sorted(kept), "what was committed is read")


def transact(producer: Producer, topic: str, values: list[str], *, commit: bool) -> bool:
    producer.begin_transaction()
    write(producer, topic, values)
    persistently(producer.commit_transaction if commit else producer.abort_transaction)
    return commit


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_our_own_producer_goes_on_with_the_next_coordinator(cluster: Cluster, commit: bool) -> None:
    topic, name, servers = fresh("orders"), fresh("payments"), cluster.bootstrap_servers
    with Client(servers) as client:
        producer = client.producer(transactional_id=name)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"a", partition=0)
        producer.flush()
        dead = coordinator(cluster, name)

        cluster.brokers[dead].kill()
        producer.send(topic, b"b", partition=1)
        (producer.commit_transaction if commit else producer.abort_transaction)()
        with producer.transaction():
            producer.send(topic, b"c", partition=0)

    expected = ["a", "b", "c"] if commit else ["c"]
    wait_until(lambda: read_to_end(servers, topic) == expected, "what was committed is read")
    cluster.start_broker(dead)
    wait_until(lambda: read_to_end(servers, topic) == expected, "and nothing else")
