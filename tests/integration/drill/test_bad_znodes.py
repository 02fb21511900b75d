"""Znodes spoilt by hand, under real brokers: each is named in the log and left, everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from support.clusters.mixed import MixedCluster, mixed_cluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java]

TOPIC = '{"version":3,"topic_id":"%s","partitions":%s,"adding_replicas":{},"removing_replicas":{}}'
SPOILT_TOPICS = {
    "no-json": b"{not json",
    "empty": b"",
    "a-list": b"[1,2,3]",
    "wrong-types": (TOPIC % ("AAAAAAAAAAAAAAAAAAAAAw", '{"0":"one"}')).encode(),
    "same-replica-twice": (TOPIC % ("AAAAAAAAAAAAAAAAAAAABA", '{"0":[1,1]}')).encode(),
    "no-replicas": (TOPIC % ("AAAAAAAAAAAAAAAAAAAABQ", '{"0":[]}')).encode(),
    "bad-id": (TOPIC % ("short", '{"0":[1]}')).encode(),
}
NOWHERE = {"topic": "good", "partition": 0, "replicas": [77, 78]}
GHOST = {"topic": "ghost", "partition": 3, "replicas": [1]}
NO_NUMBER = {"topic": "good", "partition": "zero", "replicas": [1]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("bad"), {1: "ottla", 2: "ottla"}) as running:
        running.create("good", [1, 2], [2, 1])
        yield running


def logs(cluster: MixedCluster) -> str:
    return "".join(Path(broker.log_file).read_text() for broker in cluster.brokers.values())


def create(cluster: MixedCluster, name: str, *replicas: list[int]) -> None:
    """By a client that looks for the controller anew when it has moved."""
    with Client(cluster.bootstrap) as client:
        (made,) = client.run(create_topics, [a_topic(name, assignments=dict(enumerate(replicas)))])
    assert made.error_code == 0, made


def assert_alive(cluster: MixedCluster, name: str) -> None:
    """The controller creates, elects and deletes as if nothing had happened; nobody fell over anything."""
    create(cluster, name, [2, 1])
    assert cluster.leaders(name) == [2]
    cluster.zk.create(f"/admin/delete_topics/{name}")
    cluster.wait_gone(name)
    for broker in cluster.brokers.values():
        assert broker.is_running
    assert "Traceback" not in logs(cluster)
    given_up = [line for line in logs(cluster).splitlines() if "cannot go on" in line]
    assert [line for line in given_up if "another controller was elected" not in line] == []


def test_topics_that_cannot_be_read_are_left_alone_before_and_after_failover(cluster: MixedCluster):
    for name, content in SPOILT_TOPICS.items():
        cluster.zk.create(f"/brokers/topics/{name}", content)
    cluster.zk.create(
        "/brokers/topics/strangers", (TOPIC % ("AAAAAAAAAAAAAAAAAAAABg", '{"0":[55,56]}')).encode()
    )
    cluster.zk.create(
        "/brokers/topics/gap", (TOPIC % ("AAAAAAAAAAAAAAAAAAAABw", '{"0":[1],"7":[2,1]}')).encode()
    )

    for governs in (1, 2):
        cluster.elect_controller(governs)
        wait_until(lambda: cluster.state("gap", 7) is not None, "what can be served is served", 20)
        assert_alive(cluster, f"under-{governs}")
    assert cluster.state("strangers") is None, "nobody can lead it"
    for name in SPOILT_TOPICS:
        assert f"/brokers/topics/{name}" in logs(cluster), "the log names it"
        assert cluster.state(name) is None
        cluster.zk.delete(f"/brokers/topics/{name}")
    for name in ("gap", "strangers"):
        cluster.zk.create(f"/admin/delete_topics/{name}")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version":1,"leader":"1","leader_epoch":0,"isr":[1]}'])
def test_a_state_that_cannot_be_read_costs_that_partition_alone(cluster: MixedCluster, content: bytes):
    name = f"spoilt-{len(content)}"
    create(cluster, name, [1, 2], [2, 1])
    cluster.zk.set(f"/brokers/topics/{name}/partitions/0/state", content)

    cluster.elect_controller(1)
    cluster.elect_controller(2)

    assert cluster.zk.get(f"/brokers/topics/{name}/partitions/0/state")[0] == content
    assert f"/brokers/topics/{name}/partitions/0/state" in logs(cluster)
    assert cluster.state(name, 1) is not None
    assert_alive(cluster, f"beside-{name}")
    cluster.zk.create(f"/admin/delete_topics/{name}")
    cluster.wait_gone(name)


@pytest.mark.parametrize("rows", [[NOWHERE], [GHOST], [NO_NUMBER], [], "nothing"])
def test_a_reassignment_to_nowhere_is_refused_and_removed(cluster: MixedCluster, rows: object):
    before = cluster.read("/brokers/topics/good")

    cluster.zk.create("/admin/reassign_partitions", json.dumps({"version": 1, "partitions": rows}).encode())

    wait_until(lambda: not cluster.zk.exists("/admin/reassign_partitions"), "the old tool's node is gone", 20)
    assert cluster.read("/brokers/topics/good") == before
    assert_alive(cluster, "after-nowhere")


@pytest.mark.parametrize(
    "content", [b"", b"]", b'{"version":1,"partitions":[{"topic":"ghost","partition":1}]}']
)
def test_a_preferred_election_of_nothing_is_refused_and_removed(cluster: MixedCluster, content: bytes):
    cluster.zk.create("/admin/preferred_replica_election", content)

    wait_until(lambda: not cluster.zk.exists("/admin/preferred_replica_election"), "the node is gone", 20)
    assert_alive(cluster, "after-preferred")


def test_notifications_that_cannot_be_read_are_named_and_removed(cluster: MixedCluster):
    for parent, prefix in (
        ("/isr_change_notification", "isr_change_"),
        ("/log_dir_event_notification", "log_dir_event_"),
    ):
        for content in (b"", b"{", b'{"version":1,"partitions":7,"broker":"x"}'):
            cluster.zk.create(f"{parent}/{prefix}", content, sequence=True)
        wait_until(lambda parent=parent: not cluster.zk.get_children(parent), f"{parent} is empty", 20)  # type: ignore[misc]
        assert f"{parent}/{prefix}" in logs(cluster)
    cluster.zk.create("/config/changes/config_change_", b"{", sequence=True)
    cluster.zk.create("/admin/delete_topics/never-was")
    wait_until(lambda: not cluster.zk.exists("/admin/delete_topics/never-was"), "its mark is gone", 20)
    assert_alive(cluster, "after-notifications")


def test_registrations_that_cannot_be_read_are_no_brokers(cluster: MixedCluster):
    cluster.zk.create("/brokers/ids/88", b'{"version":', ephemeral=True)
    cluster.zk.create("/brokers/ids/eighty", b"{}", ephemeral=True)

    assert_alive(cluster, "after-strangers")
    assert set(cluster.admin.list_topics(timeout=10).brokers) == {1, 2}
    assert "/brokers/ids/88" in logs(cluster)
    assert "/brokers/ids/eighty" in logs(cluster)


def test_nobody_governs_by_an_epoch_that_cannot_be_read_until_it_is_mended(cluster: MixedCluster):
    epoch = cluster.controller_epoch
    cluster.zk.set("/controller_epoch", b"many")
    cluster.zk.delete("/controller")
    wait_until(lambda: "no controller can be elected" in logs(cluster), "the log says why", 20)
    assert not cluster.zk.exists("/controller")

    cluster.zk.set("/controller_epoch", str(epoch).encode())

    wait_until(lambda: cluster.controller_epoch > epoch, "somebody governs again", 20)
    assert_alive(cluster, "after-epoch")
