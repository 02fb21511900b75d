"""Clusters of Ottla alone: every duty of the controller, cut in two by its death or dismissal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.bench.duties import DUTIES, FIRST, OTHER, Stage, hand_over, is_whole
from support.clusters.mixed import MixedCluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java]

IN_SHORT = [(3, "grow", True), (3, "controlled shutdown", True), (3, "broker restart", False)]
ALL = [
    pytest.param(size, duty, by_kill, marks=() if (size, duty, by_kill) in IN_SHORT else pytest.mark.long)
    for size in (3, 5)
    for duty in DUTIES
    for by_kill in (False, True)
]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, MixedCluster]]:
    """Clusters by size, each started when it is first asked for."""
    running: dict[int, MixedCluster] = {}
    try:
        yield running
    finally:
        for cluster in running.values():
            cluster.stop()


@pytest.fixture
def cluster(
    clusters: dict[int, MixedCluster], tmp_path_factory: pytest.TempPathFactory, size: int
) -> Iterator[MixedCluster]:
    if size not in clusters:
        kinds = dict.fromkeys(range(1, size + 1), "ottla")
        clusters[size] = MixedCluster(tmp_path_factory.mktemp("ottla"), kinds)
        clusters[size].start()
    yield clusters[size]
    clusters[size].mend()


@pytest.mark.parametrize(("size", "duty", "by_kill"), ALL)
def test_what_one_controller_began_another_finishes_and_nothing_is_lost(
    cluster: MixedCluster, size: int, duty: str, by_kill: bool
):
    name = f"{duty.replace(' ', '-')}-{'killed' if by_kill else 'dismissed'}"
    takers = frozenset(cluster.brokers) - {FIRST, OTHER}

    hand_over(Stage(cluster, name, FIRST, takers), DUTIES[duty], by_kill=by_kill)

    if cluster.zk.exists(f"/brokers/topics/{name}"):
        cluster.zk.create(f"/admin/delete_topics/{name}")
        cluster.wait_gone(name)


@pytest.mark.long
@pytest.mark.parametrize("size", [5])
def test_twenty_partitions_move_while_every_second_broker_bounces(cluster: MixedCluster, size: int):
    """KAFKA-4214, KAFKA-6193, KAFKA-9089, KAFKA-1097: early ends, lost state, forgotten partitions."""
    before = [[1 + (i + j) % 5 for j in range(3)] for i in range(20)]
    after = [[1 + (i + j + 2) % 5 for j in range(3)] for i in range(20)]
    stage = Stage(cluster, "bounced", FIRST, frozenset(cluster.brokers))
    stage.create(*before, min_insync_replicas="2")
    stage.under_load()
    rows = [{"topic": stage.topic, "partition": index, "replicas": held} for index, held in enumerate(after)]
    cluster.zk.create("/admin/reassign_partitions", json.dumps({"version": 1, "partitions": rows}).encode())

    for number in (1, 3, 5):
        cluster.kill(number)
        cluster.start_again(number)

    for index, held in enumerate(after):
        cluster.wait_moved(stage.topic, index, held)
    wait_until(lambda: is_whole(stage), "every ISR is full and everybody knows", 60, every=0.3)
    assert not cluster.zk.exists("/admin/reassign_partitions")
    assert stage.load is not None
    stage.load.check()
    cluster.zk.create(f"/admin/delete_topics/{stage.topic}")
    cluster.wait_gone(stage.topic)
