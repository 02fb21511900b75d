"""The same script on three Apache brokers and on three Ottla brokers leaves the same znodes.

Compared are all paths and their JSON. Left out is what no two runs share (topic ids, times, ports, the id of
the cluster) and what counts writes (leader epochs, znode versions, the controller epoch of a state), because
Ottla writes once where Kafka writes twice:

* a leader dies with the controller: Kafka writes leader -1, then the new leader; Ottla the new leader;
* a reassignment ends: Kafka moves the leader, then shrinks the ISR; Ottla does both in one write;
* a topic is deleted: Kafka shrinks its ISRs first; Ottla does not touch them any more.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from support.clusters.mixed import MixedCluster, mixed_cluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

CONTROLLER, LEAVER, VICTIM = 2, 3, 1
COUNTS = ("leader_epoch", "controller_epoch")
NEVER_EQUAL = ("topic_id", "timestamp", "port", "endpoints", "id", "block_start", "block_end")


def live_through(cluster: MixedCluster) -> None:
    """Everything that writes to ZooKeeper, each step to its end."""
    cluster.elect_controller(CONTROLLER)
    cluster.create("kept", [1, 2, 3], [2, 3, 1], [3, 1, 2], retention_ms="1234567")
    cluster.create("doomed", [1, 2])
    cluster.grow("kept", 4)
    cluster.reassign_by_znode("kept", 0, [2, 3])
    cluster.wait_moved("kept", 0, [2, 3])
    wait_until(lambda: not cluster.zk.exists("/admin/reassign_partitions"), "the reassignment's node is gone")
    cluster.brokers[LEAVER].shut_down()
    wait_until(lambda: not cluster.zk.exists(f"/brokers/ids/{LEAVER}"), "the broker left")
    cluster.start_again(LEAVER)
    wait_for_full_isr(cluster)
    cluster.kill(VICTIM)
    wait_until(lambda: VICTIM not in cluster.leaders("kept"), "other brokers lead", 30)
    cluster.start_again(VICTIM)
    wait_for_full_isr(cluster)
    astray = [index for index in range(4) if not_preferred(cluster, index)]
    cluster.prefer(*[("kept", index) for index in astray])
    cluster.delete("doomed")
    cluster.wait_gone("doomed")


def wait_for_full_isr(cluster: MixedCluster) -> None:
    def is_full() -> bool:
        replicas = cluster.read("/brokers/topics/kept")["partitions"]
        states = cluster.states("kept")
        return all(len(state["isr"]) == len(replicas[str(i)]) for i, state in enumerate(states))

    wait_until(is_full, "every ISR is full", 60, every=0.2)


def not_preferred(cluster: MixedCluster, index: int) -> bool:
    replicas = cluster.read("/brokers/topics/kept")["partitions"][str(index)]
    return bool(cluster.leaders("kept")[index] != replicas[0])


def picture(zk: KazooClient) -> dict[str, Any]:
    """All of Kafka's znodes, without what no two runs share."""
    found: dict[str, Any] = {}

    def walk(path: str) -> None:
        for child in sorted(zk.get_children(path or "/")):
            below = f"{path}/{child}"
            if below == "/zookeeper":
                continue
            data = zk.get(below)[0]
            found[below] = comparable(below, data)
            walk(below)

    walk("")
    return {path: data for path, data in found.items() if not path.startswith("/config/changes/")}


def comparable(path: str, data: bytes | None) -> Any:
    if path == "/controller_epoch":
        return "a number" if data is not None and data.isdigit() else data
    if not data:
        return None
    value = json.loads(data)
    if not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if key not in (*NEVER_EQUAL, *COUNTS)}
    if "isr" in kept:
        kept["isr"] = sorted(kept["isr"])
    return kept


@pytest.mark.full("six brokers in two clusters")
def test_the_same_script_leaves_the_same_znodes(tmp_path: Path, jars: object):
    pictures = {}
    for kind in ("apache", "ottla"):
        more = {"ottla.decisions.enable": False, "ottla.guard.enable": False} if kind == "ottla" else {}
        with mixed_cluster(tmp_path / kind, dict.fromkeys((1, 2, 3), kind), **more) as cluster:
            live_through(cluster)
            pictures[kind] = picture(cluster.zk)

    assert sorted(pictures["ottla"]) == sorted(pictures["apache"])
    differing = {
        path: (pictures["apache"][path], data)
        for path, data in pictures["ottla"].items()
        if data != pictures["apache"][path]
    }
    assert differing == {}
