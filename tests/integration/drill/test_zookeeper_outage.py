"""ZooKeeper away for longer than any session: every broker comes back by itself, and the work goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from kazoo.exceptions import KazooException

from support.bench.duties import Stage, is_moved, is_whole, prepare_move
from support.clusters.mixed import MixedCluster, mixed_cluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java]

SESSION_MS = 2_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    settings = {"zookeeper.session.timeout.ms": SESSION_MS}
    with mixed_cluster(
        tmp_path_factory.mktemp("outage"), dict.fromkeys((1, 2, 3), "ottla"), **settings
    ) as running:
        yield running


def epochs(cluster: MixedCluster) -> dict[int, int]:
    """Each registered broker's epoch."""
    found = {}
    for number in cluster.brokers:
        stat = cluster.zk.exists(f"/brokers/ids/{number}")
        if stat is not None:
            found[number] = stat.czxid
    return found


def outage(cluster: MixedCluster) -> None:
    """All sessions run out, and whoever wants a new one finds no ZooKeeper for a while."""
    for broker in cluster.brokers.values():
        broker.pause()
    wait_until(lambda: not epochs(cluster), "ZooKeeper gave everybody up", 30)
    cluster.zookeeper.stop()
    for broker in cluster.brokers.values():
        broker.resume()
    cluster.zookeeper.start()
    wait_until(lambda: answers(cluster), "ZooKeeper answers again", 30)


def answers(cluster: MixedCluster) -> bool:
    with suppress(KazooException):
        return bool(cluster.zk.exists("/brokers"))
    return False


def test_everybody_registers_again_and_a_reassignment_goes_on(cluster: MixedCluster, long_form: bool):
    """KAFKA-5473, KAFKA-6517: alive but unregistered for ever, or stuck between expiry and a request."""
    for round_ in range(20 if long_form else 1):
        cluster.elect_controller(1)  # the third will sleep when the reassignment begins
        stage = Stage(cluster, f"outage-{round_}", cluster.controller, frozenset(cluster.brokers))
        prepare_move(stage)
        cluster.brokers[3].pause()
        cluster.reassign_by_znode(stage.topic, 0, [3, 2, 1])
        wait_until(lambda stage=stage: stage.node()["adding_replicas"], "it has begun", 20)  # type: ignore[misc]

        outage(cluster)

        wait_until(lambda: len(epochs(cluster)) == 3, "all are registered", 60)
        wait_until(lambda stage=stage: is_moved(stage), "the reassignment is done", 60, every=0.2)  # type: ignore[misc]
        wait_until(lambda: cluster.controller in cluster.brokers, "somebody governs", 30)
        assert stage.load is not None
        stage.load.check()
        cluster.zk.create(f"/admin/delete_topics/{stage.topic}")
        cluster.wait_gone(stage.topic)


def test_a_creation_that_meets_the_outage_is_finished_or_absent(cluster: MixedCluster):
    stage = Stage(cluster, "met", cluster.controller, frozenset(cluster.brokers))
    new = stage.write_topic({index: [1, 2, 3] for index in range(20)})
    cluster.zk.create("/config/topics/met", b'{"version":1,"config":{}}')
    cluster.zk.create("/brokers/topics/met", new)

    outage(cluster)

    wait_until(lambda: len(epochs(cluster)) == 3, "all are registered", 60)
    wait_until(lambda: len(stage.states()) == 20 and is_whole(stage), "the topic is whole", 60, every=0.2)
