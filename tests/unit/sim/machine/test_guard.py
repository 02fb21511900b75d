"""The simulated guard ends the session of a dead process, and of no other."""

import pytest

from ottla.sim.cluster import Cluster
from ottla.sim.machine.zookeeper import HOST
from ottla.sim.plan import Shape
from ottla.sim.world import MILLISECOND, SECOND, World

SESSION = {"zookeeper.session.timeout.ms": "3000"}


def started(**settings: str) -> Cluster:
    cluster = Cluster(World(1), Shape(settings={**SESSION, **settings}))
    cluster.start()
    cluster.world.run_while(lambda: len(registered(cluster)) < 3, 60 * SECOND)
    return cluster


def registered(cluster: Cluster) -> list[str]:
    return [path for path in cluster.zookeeper.tree.nodes if path.startswith("/brokers/ids/")]


def passes(cluster: Cluster, span_us: int) -> None:
    until_us = cluster.world.now_us + span_us
    cluster.world.run_while(lambda: cluster.world.now_us < until_us, 2 * span_us)


def test_a_killed_process_loses_its_session_at_once_and_leaves_word() -> None:
    cluster = started()

    cluster.brokers[1].kill()
    passes(cluster, 300 * MILLISECOND)

    assert "/brokers/ids/1" not in registered(cluster)
    assert "/ottla/deaths/1" in cluster.zookeeper.tree.nodes


@pytest.mark.parametrize("setting", ["false", "true"], ids=["without a guard", "killed with its guard"])
def test_where_no_guard_is_left_the_session_lasts(setting: str) -> None:
    cluster = started(**{"ottla.guard.enable": setting})

    cluster.brokers[1].kill(with_guard=True)
    passes(cluster, 2 * SECOND)

    assert "/brokers/ids/1" in registered(cluster)


def test_a_paused_process_keeps_its_session_until_the_time_out() -> None:
    cluster = started()

    cluster.brokers[1].pause()
    passes(cluster, 2 * SECOND)
    before = registered(cluster)
    passes(cluster, 2 * SECOND)

    assert "/brokers/ids/1" in before
    assert "/brokers/ids/1" not in registered(cluster)


def test_a_guard_that_cannot_reach_zookeeper_tries_again() -> None:
    cluster = started()
    host = cluster.brokers[1].host
    cluster.network.block(host, HOST)

    cluster.brokers[1].kill()
    passes(cluster, SECOND)
    before = registered(cluster)
    cluster.network.unblock_all()
    passes(cluster, 300 * MILLISECOND)

    assert "/brokers/ids/1" in before
    assert "/brokers/ids/1" not in registered(cluster)
