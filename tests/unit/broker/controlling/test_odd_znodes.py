"""Znodes that somebody wrote by hand: numbers and names that no request can carry. One is left alone, the
others are served, and the controller stays in office."""

import pytest

from ottla.model.ids import BrokerId
from ottla.znodes import paths
from ottla.znodes.codec import encode_reassignment
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, SetData
from support.bench.controller_bench import ControllerBench

TOO_LARGE = 2**31


def in_office() -> ControllerBench:
    bench = ControllerBench().start()
    bench.register(2)
    return bench


def serves_on(bench: ControllerBench) -> bool:
    """A topic that comes later still gets its leader, from the same controller."""
    bench.create_topic("later", (1, 2))
    return bench.node.controller.is_active and bench.state("later", 0) is not None


@pytest.mark.parametrize(
    "content",
    [
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"%d":[1,2]}}' % TOO_LARGE,
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,%d]}}' % TOO_LARGE,
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]},"adding_replicas":{"0":[%d]}}'
        % TOO_LARGE,
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]},"adding_replicas":{"0":[5]}}',
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]},"removing_replicas":{"0":[1,2]}}',
    ],
)
def test_an_assignment_with_impossible_numbers(content: bytes):
    bench = in_office()

    bench.zk(Create(paths.topic("odd"), content))

    assert serves_on(bench)


@pytest.mark.parametrize("name", ["x" * 250, "with space", "ünlaut"])
def test_a_topic_whose_name_no_topic_may_have(name: str):
    bench = in_office()

    bench.zk(
        Create(
            paths.topic(name), b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]}}'
        )
    )

    assert serves_on(bench)
    assert bench.state(name, 0) is None


@pytest.mark.parametrize(
    "content",
    [
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":2147483647,"isr":[1,2]}',
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":99999999999,"isr":[1,2]}',
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[1,99999999999]}',
        b'{"controller_epoch":1,"leader":99999999999,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[]}',
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,2,1]}',
        b'{"controller_epoch":-99999999999,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}',
    ],
)
def test_a_state_with_impossible_numbers(content: bytes):
    bench = in_office()
    bench.create_topic("orders", (2, 1))
    bench.zk(SetData("/brokers/topics/orders/partitions/0/state", content, ANY_VERSION))

    bench.unregister(2)
    bench.register(2)
    assert serves_on(bench)

    bench.expire_session(101)
    bench.advance(2_000)
    assert bench.node.controller.is_serving


@pytest.mark.parametrize("number", ["99999999999", "2147483648", "007"])
def test_a_registration_under_an_impossible_number(number: str):
    bench = in_office()

    bench.zk(
        Create(
            f"/brokers/ids/{number}",
            b'{"version":5,"host":"h","port":1,"endpoints":["PLAINTEXT://h:1"],"jmx_port":-1}',
            ephemeral=True,
        )
    )

    assert serves_on(bench)


def test_a_registration_with_an_impossible_port():
    bench = in_office()

    bench.zk(Create("/brokers/ids/3", b'{"version":1,"host":"h","port":99999999999}', ephemeral=True))

    assert serves_on(bench)


def test_a_registration_that_cannot_be_read_yet_counts_as_soon_as_it_can():
    bench = in_office()
    bench.zk(Create(paths.broker(3), b"", ephemeral=True))
    assert bench.node.controller.broker_epoch(BrokerId(3)) is None

    written = b'{"version":5,"host":"h","port":1,"endpoints":["PLAINTEXT://h:1"],"jmx_port":-1}'
    bench.zk(SetData(paths.broker(3), written, ANY_VERSION))

    assert bench.node.controller.broker_epoch(BrokerId(3)) is not None


@pytest.mark.parametrize("replicas", [(TOO_LARGE,), (1, TOO_LARGE), (-1,), (), (1, 1)])
def test_a_reassignment_to_nowhere(replicas: tuple[int, ...]):
    bench = in_office()
    bench.create_topic("orders", (1, 2))

    bench.zk(Create(paths.REASSIGN_PARTITIONS, encode_reassignment({("orders", 0): replicas})))  # type: ignore[dict-item]

    assert serves_on(bench)
    assert not bench.has(paths.REASSIGN_PARTITIONS)


@pytest.mark.parametrize("epoch", [b"2147483647", b"99999999999", b"-7"])
def test_a_controller_epoch_without_a_next_one_elects_nobody_until_it_is_mended(epoch: bytes):
    bench = ControllerBench()
    bench.tree.open_session(900)
    bench.tree.apply(Create(paths.CONTROLLER_EPOCH, epoch), 900, 1)
    bench.start()
    assert not bench.node.controller.is_active

    bench.zk(SetData(paths.CONTROLLER_EPOCH, b"3", ANY_VERSION))
    bench.advance(2_000)

    assert bench.node.controller.is_serving


def test_a_controller_epoch_that_was_removed_begins_where_the_brokers_stopped():
    bench = in_office()
    bench.serves_itself = True
    bench.zk(SetData(paths.CONTROLLER_EPOCH, b"40", ANY_VERSION))
    bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
    assert bench.data(paths.CONTROLLER_EPOCH) == b"41"

    bench.zk(Delete(paths.CONTROLLER_EPOCH, ANY_VERSION))
    bench.create_topic("shows-that-it-is-gone", (1, 2))
    bench.advance(2_000)

    assert bench.data(paths.CONTROLLER_EPOCH) == b"42"
    assert serves_on(bench)
    assert "later" in bench.node.metadata.topics
