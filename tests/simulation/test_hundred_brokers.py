"""A hundred brokers, each a real node: one controller serves them all, and everybody hears it."""

from __future__ import annotations

import pytest

from ottla.sim.cluster import Cluster
from ottla.sim.plan import KEPT, Shape, TopicKind, TopicShape
from ottla.sim.truth.ending import Ending
from ottla.sim.world import SECOND, World

pytestmark = [pytest.mark.slow, pytest.mark.full("half a minute of one processor")]

BROKERS = 100
PARTITIONS = 300
DEAD = 10
LIMIT_US = 60 * SECOND


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    topic = TopicShape("topic-0", TopicKind.PLAIN, PARTITIONS, KEPT)
    cluster = Cluster(World(100), Shape(brokers=BROKERS, topics=(topic,)))
    cluster.start()
    cluster.await_(cluster.is_whole, LIMIT_US, "the topic is whole")
    cluster.await_(lambda: all_agree(cluster), LIMIT_US, "everybody shows the topic")
    return cluster


def controller_of(cluster: Cluster) -> int:
    (number,) = [n for n, b in cluster.brokers.items() if b.is_running and b.node.controller.is_active]
    return number


def all_agree(cluster: Cluster) -> bool:
    """Every live broker shows each partition as it stands in ZooKeeper, with a leader that is alive."""
    live = {number for number, broker in cluster.brokers.items() if broker.is_running}
    states = {partition: cluster.state_of(partition) for partition in cluster.assignments()}
    for number in live:
        metadata = cluster.brokers[number].node.metadata
        if set(metadata.brokers) != live:
            return False
        for partition, state in states.items():
            shown = metadata.partition(partition)
            if state is None or shown is None or shown.leader not in live:
                return False
            if (shown.leader, shown.leader_epoch) != (state["leader"], state["leader_epoch"]):
                return False
    return True


def test_a_hundred_brokers_show_the_same_after_a_tenth_and_the_controller_died_and_came_back(
    cluster: Cluster,
) -> None:
    first = controller_of(cluster)
    others = [number for number in cluster.brokers if number != first]
    dead = [first, *others[:: len(others) // DEAD][: DEAD - 1]]

    for number in dead:
        cluster.brokers[number].kill()
    cluster.await_(lambda: all_agree(cluster), LIMIT_US, "the ninety that are left agree")
    assert controller_of(cluster) not in dead

    for number in dead:
        cluster.brokers[number].start()
    cluster.await_(cluster.is_whole, LIMIT_US, "all hundred are in sync again")
    cluster.await_(lambda: all_agree(cluster), LIMIT_US, "all hundred agree")
    ending = Ending(cluster)
    ending.check_replicas()


def test_a_rolling_restart_of_a_hundred_brokers_leaves_every_partition_a_leader(cluster: Cluster) -> None:
    for number in list(cluster.brokers)[::10]:
        broker = cluster.brokers[number]
        broker.shut_down()
        cluster.await_(lambda broker=broker: not broker.is_running, LIMIT_US, "the broker left")  # type: ignore[misc]
        assert broker.exit is not None
        assert broker.exit.code == 0
        assert all(cluster.state_of(each)["leader"] not in (-1, number) for each in cluster.assignments())  # type: ignore[index]
        broker.start()
        cluster.await_(cluster.all_registered, LIMIT_US, "it is back")

    cluster.await_(cluster.is_whole, LIMIT_US, "all are in sync again")
    cluster.await_(lambda: all_agree(cluster), LIMIT_US, "all agree")
