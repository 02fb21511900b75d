"""Topics with more partitions than can be: refused at once, and ZooKeeper is not asked for ever."""

from collections.abc import Callable

import pytest

from ottla.broker.topic_names import colliding
from ottla.model.errors import ErrorCode
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.zookeeper import paths
from ottla.zookeeper.ops import Create, Multi
from support.controller_bench import ControllerBench

Ask = Callable[[ControllerBench, int], int]

TOO_MANY_FOR_ANYBODY = 2**31 - 1
TOO_MANY_FOR_A_MEBIBYTE = 100_000


def in_office() -> ControllerBench:
    bench = ControllerBench()
    bench.serves_itself = True
    bench.start()
    bench.create_topic("orders", (1,))
    return bench


def create(bench: ControllerBench, partitions: int) -> int:
    topic = CreatableTopic(name="huge", num_partitions=partitions, replication_factor=1)
    return int(bench.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)


def grow(bench: ControllerBench, partitions: int) -> int:
    topic = CreatePartitionsTopic(name="orders", count=partitions, assignments=None)
    return int(bench.ask(CreatePartitionsRequest(topics=[topic]), 3).results[0].error_code)


def hang_up_on_large_nodes(bench: ControllerBench) -> None:
    def lose(op: object) -> bool | None:
        is_large = (
            isinstance(op, Create | Multi) and paths.TOPICS in str(op)[:200] and len(str(op)) > 1_000_000
        )
        return False if is_large else None

    bench.lose = lose


@pytest.mark.parametrize("ask", [create, grow])
def test_a_number_beyond_every_znode_is_refused_before_anything_is_placed(ask: Ask) -> None:
    assert ask(in_office(), TOO_MANY_FOR_ANYBODY) == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("ask", [create, grow])
def test_a_znode_that_zookeeper_hangs_up_on_is_given_up(ask: Ask) -> None:
    bench = in_office()
    hang_up_on_large_nodes(bench)

    assert ask(bench, TOO_MANY_FOR_A_MEBIBYTE) == ErrorCode.INVALID_PARTITIONS
    assert bench.node.controller.is_active


def test_names_collide_where_dots_and_underscores_alone_tell_them_apart() -> None:
    others = ["a.b", "a_b", "a-b", "a.bc", "plain", "a.b_c"]

    assert colliding("a_b", others) == ["a.b"]
    assert colliding("a.b.c", others) == ["a.b_c"]
    assert colliding("plain", others) == []
