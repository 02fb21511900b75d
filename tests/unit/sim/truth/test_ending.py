"""What replicas must have in common when everything has come to rest."""

import pytest

from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.sim.cluster import Cluster
from ottla.sim.machine.broker import SimBroker
from ottla.sim.plan import Shape, TopicKind, TopicShape
from ottla.sim.truth.contents import Settled, newest
from ottla.sim.truth.ending import Ending
from ottla.sim.truth.history import Violation
from ottla.sim.world import SECOND, World

WHOLE = [
    Settled(0, b"a", b"1"),
    Settled(1, b"b", b"2"),
    Settled(2, b"a", b"3"),
    Settled(3, b"c", b""),
    Settled(4, b"d", b"4"),
]


def test_a_compacted_replica_has_the_newest_of_every_key() -> None:
    compacted = [Settled(1, b"b", b"2"), Settled(2, b"a", b"3"), Settled(4, b"d", b"4")]

    assert newest(compacted) == newest(WHOLE)


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_one_that_lacks_the_newest_of_a_key_differs(lost: int) -> None:
    assert newest([each for each in WHOLE if each.offset != lost]) != newest(WHOLE)


def test_one_that_gives_a_deleted_key_again_differs() -> None:
    before = [Settled(0, b"c", b"0"), *WHOLE]

    assert newest([each for each in before if each.offset != 3]) != newest(before)


def test_what_was_aborted_need_not_be_there() -> None:
    aborted = Settled(5, b"a", b"5", is_committed=False)

    assert newest([*WHOLE, aborted]) == newest(WHOLE)


def test_the_groups_records_are_compacted_by_each_replica_in_its_own_time() -> None:
    """Seed 434996632: after a jump of the clock two of three had compacted them."""
    assert Cluster(World(1), Shape()).kind_of("__consumer_offsets") is TopicKind.COMPACTED


ORDERS_0 = TopicPartition("orders", 0)


def a_cluster_at_work() -> Cluster:
    """Every replica has got records, and more keep coming."""
    cluster = Cluster(World(1), Shape(topics=(TopicShape("orders", TopicKind.PLAIN, 1),), producers=1))
    cluster.start()
    cluster.start_clients()
    cluster.world.run_while(lambda: min(ends(cluster), default=0) < 10, 60 * SECOND)
    return cluster


def ends(cluster: Cluster) -> list[int]:
    found = [broker.node.partitions.find(*ORDERS_0) for broker in cluster.brokers.values()]
    return [int(each.log.end_offset) for each in found if each is not None]


def a_follower(cluster: Cluster) -> SimBroker:
    state = cluster.state_of(ORDERS_0)
    assert state is not None
    return next(broker for number, broker in cluster.brokers.items() if number != state["leader"])


def test_replicas_are_compared_when_none_is_being_written_to() -> None:
    """Seeds 573041376 and 573041200: one had not got the last record yet."""
    cluster = a_cluster_at_work()
    follower = a_follower(cluster)
    follower.pause()
    assert cluster.world.run_while(lambda: len(set(ends(cluster))) == 1, 10 * SECOND)
    cluster.world.after(SECOND // 2, follower.resume)

    Ending(cluster).check_replicas()

    assert len(set(ends(cluster))) == 1


def test_a_replica_that_differs_in_one_bit_is_noticed() -> None:
    cluster = a_cluster_at_work()
    log = a_follower(cluster).node.log_dirs.get(ORDERS_0)
    assert log is not None
    disk, path = a_follower(cluster).disk, f"{log.path}/{0:020d}.log"
    content = bytearray(disk.read_file(path))
    content[80] ^= 1
    disk.write_file(path, content)

    with pytest.raises(Violation, match="replicas of orders-0 differ"):
        Ending(cluster).check_replicas()


def test_a_replica_that_never_gets_the_rest_is_noticed() -> None:
    cluster = a_cluster_at_work()
    a_follower(cluster).pause()
    assert cluster.world.run_while(lambda: len(set(ends(cluster))) == 1, 10 * SECOND)

    with pytest.raises(Violation, match="followers hold what their leaders hold"):
        Ending(cluster).check_replicas()


def with_two_disks_each() -> Cluster:
    cluster = Cluster(World(1), Shape(directories=2, topics=()))
    cluster.start()
    return cluster


def lost_directories(broker: SimBroker) -> list[str]:
    return sorted(broker.node.log_dirs.offline)


def test_a_broker_that_was_starting_on_a_bad_disk_when_all_healed_is_started_anew() -> None:
    """Seed 1757762974 of a hunt: it lived on without the disk, which had long been mended."""
    cluster = with_two_disks_each()
    broker = cluster.brokers[2]
    broker.kill(with_guard=True)  # it waits for the end of its last session
    broker.disk.spoil("/data-2-0", frozenset({"read", "write", "fsync", "create"}))
    broker.start()
    assert cluster.world.run_while(lambda: not lost_directories(broker), 5 * SECOND)
    assert not broker.node.is_started

    Ending(cluster).heal()
    cluster.world.run_while(lambda: True, 5 * SECOND)

    assert broker.node.is_started
    assert lost_directories(broker) == []


def test_a_directory_that_is_given_up_after_all_healed_stays_given_up() -> None:
    cluster = with_two_disks_each()
    broker = cluster.brokers[2]
    Ending(cluster).heal()

    broker.enter(lambda: broker.node.partitions.directory_failed(LogDirectoryFailed("/data-2-0", "a bug")))
    cluster.world.run_while(lambda: True, 5 * SECOND)

    assert lost_directories(broker) == ["/data-2-0"]
