"""After a new registration: topics that were deleted meanwhile are forgotten, and no others."""

from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete
from support.bench.node_bench import OPERATOR, Bench
from unit.broker.metadata.test_metadata import ORDERS_ID, a_topic, metadata, update

ANOTHER = b'{"version":2,"brokerid":2,"timestamp":"1"}'
OLD_ID = bytes(range(1, 17))


def a_broker_that_knows_two_topics() -> Bench:
    """Orders and refunds are in ZooKeeper, and the controller has told of them."""
    bench = Bench()
    bench.tree.open_session(OPERATOR)
    bench.tree.apply(Create(paths.CONTROLLER, ANOTHER, ephemeral=True), OPERATOR, 1)
    bench.start()
    bench.zk(Create(paths.topic("orders"), b""))
    bench.zk(Create(paths.topic("refunds"), b""))
    update(bench, a_topic("orders"), a_topic("refunds", OLD_ID, p0=1, p1=2))
    return bench


def shown(bench: Bench) -> list[str | None]:
    return sorted(row.name for row in metadata(bench).topics)


def test_a_topic_deleted_while_no_controller_knew_the_broker_is_forgotten() -> None:
    """Seed 1946504082: nobody says so to a broker that registers again, and it showed the topic for ever."""
    bench = a_broker_that_knows_two_topics()
    bench.expire_session(new_session=101)
    bench.zk(Delete(paths.topic("refunds"), ANY_VERSION))
    assert shown(bench) == ["orders", "refunds"]

    update(bench, a_topic("orders"))

    assert shown(bench) == ["orders"]
    assert OLD_ID not in bench.node.metadata.topic_names


def test_a_topic_whose_deletion_a_controller_could_not_tell_before_its_term_ended_is_forgotten() -> None:
    """Seed 955420079: it was cut off, and the next controller had never heard of the topic."""
    bench = a_broker_that_knows_two_topics()
    bench.zk(Delete(paths.topic("refunds"), ANY_VERSION))

    assert update(bench, a_topic("orders"), controller_epoch=2) == 0

    assert shown(bench) == ["orders"]


def test_what_is_said_to_the_last_registration_does_not_count() -> None:
    """Only a controller that knows the new one tells of all later deletions."""
    bench = a_broker_that_knows_two_topics()
    bench.zk(Delete(paths.topic("refunds"), ANY_VERSION))

    update(bench, a_topic("orders"))

    assert shown(bench) == ["orders", "refunds"]


def test_a_topic_whose_deletion_had_begun_is_looked_for_until_it_is_gone() -> None:
    bench = a_broker_that_knows_two_topics()
    bench.zk(Create(paths.DELETE_TOPICS + "/refunds", b""))
    bench.expire_session(new_session=101)
    update(bench, a_topic("orders"))
    bench.advance(10_000)
    assert shown(bench) == ["orders", "refunds"]

    bench.zk(Delete(paths.topic("refunds"), ANY_VERSION))
    bench.zk(Delete(paths.DELETE_TOPICS + "/refunds", ANY_VERSION))
    bench.advance(3_000)

    assert shown(bench) == ["orders"]


def test_a_topic_made_again_while_it_was_looked_for_stays() -> None:
    bench = a_broker_that_knows_two_topics()
    bench.zk(Delete(paths.topic("refunds"), ANY_VERSION))
    bench.expire_session(new_session=101)
    bench.zk_is_held = True
    update(bench, a_topic("orders"))
    update(bench, a_topic("refunds", bytes(range(2, 18))))

    bench.zk_is_held = False
    for held in bench.held:
        bench.answer(held)
    bench.settle()

    assert shown(bench) == ["orders", "refunds"]


def test_a_topic_made_again_shows_no_partition_of_its_earlier_life() -> None:
    bench = a_broker_that_knows_two_topics()

    update(bench, a_topic("refunds", ORDERS_ID[::-1], p0=1))

    [row] = metadata(bench, "refunds").topics
    assert [partition.partition_index for partition in row.partitions] == [0]
