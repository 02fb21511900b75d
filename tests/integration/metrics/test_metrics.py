"""Metrics of a real cluster, read as Prometheus reads them; racks and a ZooKeeper of somebody else."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from ottla.launch.cluster import Cluster
from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper.keeper import EmbeddedKeeper
from support.processes.deaths import die
from support.processes.ports import first_of_free_ports
from support.running.waiting import wait_until


class Watched:
    """A cluster with metrics, on a ZooKeeper that it did not start."""

    def __init__(self, cluster: Cluster, metrics_port: int) -> None:
        self.cluster = cluster
        self.metrics_port = metrics_port

    def page(self, broker: int, path: str) -> str:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.metrics_port + broker}{path}", timeout=30
        ) as answer:
            text: str = answer.read().decode()
        return text

    def total(self, name: str, *brokers: int) -> float:
        """The sum of a metric over these brokers."""
        return sum(
            sample.value
            for broker in brokers
            for family in text_string_to_metric_families(self.page(broker, "/metrics"))
            for sample in family.samples
            if sample.name == name
        )


@pytest.fixture(scope="module")
def watched(zookeeper_server: EmbeddedKeeper | EmbeddedZooKeeper) -> Iterator[Watched]:
    port = first_of_free_ports(3)
    with Cluster(
        3,
        racks=["left", "right"],
        metrics_port=port,
        zookeeper=f"{zookeeper_server.connect}/metrics-test",
    ) as cluster:
        yield Watched(cluster, port)


def test_counts_follow_what_clients_do_and_what_a_death_changes(watched: Watched) -> None:
    cluster = watched.cluster
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("counted", 6, 3)])["counted"].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    before = watched.total("kafka_server_brokertopicmetrics_messagesin_total", 0, 1, 2)
    for number in range(100):
        producer.produce("counted", b"v" * 100, partition=number % 6)
    assert producer.flush(60) == 0

    everybody = (0, 1, 2)
    assert watched.total("kafka_server_brokertopicmetrics_messagesin_total", *everybody) - before >= 100
    assert watched.total("kafka_server_brokertopicmetrics_bytesin_total", *everybody) > 10_000
    assert watched.total("kafka_server_brokertopicmetrics_replicationbytesin_total", *everybody) > 20_000
    assert watched.total("kafka_controller_kafkacontroller_activecontrollercount", *everybody) == 1
    assert watched.total("kafka_server_replicamanager_underreplicatedpartitions", *everybody) == 0

    die(cluster, 2)
    alive = (0, 1)
    wait_until(
        lambda: watched.total("kafka_server_replicamanager_underreplicatedpartitions", *alive) >= 6,
        "every partition of the topic is under-replicated",
        30,
    )
    wait_until(
        lambda: watched.total("kafka_controller_kafkacontroller_activebrokercount", *alive) == 2,
        "the controller counts two brokers",
        30,
    )
    assert watched.total("kafka_controller_controllerstats_leaderelections_total", *alive) >= 2
    wait_until(
        lambda: watched.total("kafka_controller_kafkacontroller_offlinepartitionscount", *alive) == 0,
        "every partition has a leader",
        30,
    )
    cluster.start_broker(2)
    wait_until(
        lambda: watched.total("kafka_server_replicamanager_underreplicatedpartitions", *everybody) == 0,
        "all replicas are in sync again",
        30,
    )
    assert watched.total("kafka_server_replicamanager_isrexpands_total", *everybody) >= 6


def test_health_tells_who_serves_and_what_is_no_page_is_said_so(watched: Watched) -> None:
    facts = json.loads(watched.page(0, "/health"))

    assert (facts["status"], facts["broker"], facts["zookeeper_connected"]) == ("serving", 0, True)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        watched.page(0, "/secret")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200"),
        (b"GET /" + b"x" * 100_000, b""),
    ],
)
def test_odd_requests_are_answered_or_hung_up_on(watched: Watched, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", watched.metrics_port), 60) as connection:
        connection.settimeout(60)
        answer = b""
        try:
            connection.sendall(sent)
            while part := connection.recv(65_536):
                answer += part
        except ConnectionError:
            pass

    assert answer[9:12] == status
    assert b"\r\n\r\n" not in answer or status != b"200" or answer.endswith(b"\r\n\r\n")


def test_racks_are_dealt_in_turn(watched: Watched) -> None:
    admin = AdminClient({"bootstrap.servers": watched.cluster.bootstrap_servers})

    nodes = {node.id: node.rack for node in admin.describe_cluster().result(60).nodes}

    assert nodes == {0: "left", 1: "right", 2: "left"}


def test_a_zookeeper_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.launch.zookeeper.foreign.WAIT_S", 0.0)

    with pytest.raises(LaunchRefused, match=r"no ZooKeeper server of 127\.0\.0\.1:1 grants a session"):
        Cluster(1, zookeeper="127.0.0.1:1").start()
