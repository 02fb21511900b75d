"""Tools of Kafka 2.8, which write to ZooKeeper themselves, on three Ottla brokers: the cluster obeys."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.clusters.mixed import QUIET, MixedCluster, mixed_cluster
from support.processes.apache_tools import run_old
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("old"), dict.fromkeys(range(3), "ottla")) as running:
        yield running


def tool(cluster: MixedCluster, name: str, *arguments: str) -> str:
    run = run_old(name, "--zookeeper", cluster.zookeeper.connect, *arguments)
    assert run.exit_code == 0, run.stdout + run.stderr
    return run.stdout


def create(cluster: MixedCluster, topic: str, placed: str) -> None:
    tool(cluster, "TopicCommand", "--create", "--topic", topic, "--replica-assignment", placed)
    count = placed.count(",") + 1
    wait_until(lambda: len(cluster.leaders(topic)) == count, f"{topic} has its leaders", 20)


def test_the_drill_of_the_articles(cluster: MixedCluster):
    create(cluster, "drill", "0:1:2,1:2:0,2:0:1")
    cluster.elect_controller(0)
    epoch = cluster.controller_epoch

    cluster.kill(0)
    wait_until(lambda: cluster.leaders("drill") == [1, 1, 2], "the leaders have moved", 30)
    assert cluster.controller in (1, 2)
    assert cluster.controller_epoch == epoch + 1
    described = tool(cluster, "TopicCommand", "--describe", "--under-replicated-partitions")
    assert described.count("Topic: drill\t") == 3, described

    cluster.start_again(0)
    cluster.wait_for_isr("drill", 3)
    assert cluster.leaders("drill") == [1, 1, 2]

    tool(cluster, "PreferredReplicaLeaderElectionCommand")
    wait_until(lambda: cluster.leaders("drill") == [0, 1, 2], "the first replicas lead", 20)
    wait_until(lambda: not cluster.zk.exists("/admin/preferred_replica_election"), "the order is gone", 20)


def test_a_topic_made_changed_and_deleted_by_its_znodes(cluster: MixedCluster):
    create(cluster, "orders", "0:1")
    wait_until(lambda: "topic_id" in cluster.read("/brokers/topics/orders"), "it has an id", 20)
    topic_id = cluster.read("/brokers/topics/orders")["topic_id"]

    grown = ("--partitions", "2", "--replica-assignment", "0:1,1:2")
    tool(cluster, "TopicCommand", "--alter", "--topic", "orders", *grown)
    wait_until(lambda: cluster.leaders("orders") == [0, 1], "the new partition has a leader", 20)
    assert cluster.read("/brokers/topics/orders")["topic_id"] == topic_id

    entity = ("--entity-type", "topics", "--entity-name", "orders")
    tool(cluster, "ConfigCommand", "--alter", *entity, "--add-config", "max.message.bytes=1000")
    wait_until(lambda: not takes(cluster, "orders", bytes(2_000)), "the limit holds", 20)
    tool(cluster, "ConfigCommand", "--alter", *entity, "--delete-config", "max.message.bytes")
    wait_until(lambda: takes(cluster, "orders", bytes(2_000)), "the limit is lifted", 20)

    tool(cluster, "TopicCommand", "--delete", "--topic", "orders")
    cluster.wait_gone("orders")


def test_a_throttled_reassignment_is_executed_and_verified(cluster: MixedCluster, tmp_path: Path):
    create(cluster, "moved", "0:1,1:2")
    rows = [
        {"topic": "moved", "partition": 0, "replicas": [2, 1]},
        {"topic": "moved", "partition": 1, "replicas": [1, 2, 0]},
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    command, file = "ReassignPartitionsCommand", ("--reassignment-json-file", str(plan))

    tool(cluster, command, "--execute", *file, "--throttle", "5000000")
    for row in rows:
        cluster.wait_moved("moved", row["partition"], row["replicas"])
    wait_until(lambda: not cluster.zk.exists("/admin/reassign_partitions"), "the order is gone", 20)
    verified = tool(cluster, command, "--verify", *file)

    assert verified.count("is complete") == 2, verified
    assert cluster.read("/config/topics/moved")["config"] == {}
    for broker in range(3):
        assert cluster.read(f"/config/brokers/{broker}")["config"] == {}


def takes(cluster: MixedCluster, topic: str, value: bytes) -> bool:
    """Whether the broker takes a record of that size."""
    delivered: list[bool] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    producer.produce(topic, value, on_delivery=lambda error, _: delivered.append(error is None))
    assert producer.flush(20) == 0, f"{topic} did not answer"
    return all(delivered)
