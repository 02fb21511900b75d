"""Topics with more partitions than can be, and more topics than are: no request keeps the others waiting."""

from collections.abc import Callable
from time import process_time

import pytest

from ottla.broker.runtime import tasks
from ottla.controller.placement import PARTITIONS_MAX
from ottla.model.errors import ErrorCode
from ottla.model.topic_names import NamesAlike
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.headers import frame_request
from ottla.znodes import paths
from ottla.zookeeper.ops import Create, GetChildren, Multi
from support.bench.controller_bench import ControllerBench
from support.bench.node_bench import Bench, a_config

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
            isinstance(op, Create | Multi) and paths.TOPICS in str(op)[:1_000] and len(str(op)) > 1_000_000
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


def test_a_topic_does_not_grow_beyond_it_either() -> None:
    assert grow(in_office(), PARTITIONS_MAX + 1) == ErrorCode.INVALID_PARTITIONS


def test_nor_do_the_topics_of_one_request_together() -> None:
    topics = [
        CreatableTopic(name, count, 1) for name, count in (("a", 400_000), ("b", 200_000), ("c", 100_000))
    ]

    answer = in_office().ask(CreateTopicsRequest(topics=topics, validate_only=True), 7)

    assert [row.error_code for row in answer.topics] == [0, ErrorCode.INVALID_PARTITIONS, 0]


@pytest.mark.parametrize(
    "topics",
    [
        [CreatableTopic("large", 20_000, 1)],
        [CreatableTopic(f"refused {number}", 1, 1) for number in range(250)],
    ],
)
def test_others_are_served_while_a_large_request_is_judged(
    topics: list[CreatableTopic], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = in_office()
    monkeypatch.setattr(tasks, "SLICE_MS", 0)
    asked = CreateTopicsRequest(topics=topics, validate_only=True)
    bench.node.on_request(
        bench.connect(), memoryview(bytearray(b"".join(frame_request(asked, 7, 1, "c"))[4:]))
    )
    Bench.settle(bench)
    assert bench.written == []

    bench.node.on_tick()
    Bench.settle(bench)
    assert bench.written == []

    bench.settle()
    assert len(bench.written) == 1


def test_names_collide_where_dots_and_underscores_alone_tell_them_apart() -> None:
    beside = NamesAlike(["a_b", "a.b.c", "plain", "x.y"], ["a.b", "a_b", "a-b", "a.bc", "plain", "a.b_c"])
    beside.add("x_y")

    assert beside.colliding("a_b") == ["a.b"]
    assert beside.colliding("a.b.c") == ["a.b_c"]
    assert beside.colliding("plain") == []
    assert beside.colliding("x.y") == ["x_y"]


def test_of_many_unknown_names_each_is_looked_at_once() -> None:
    bench = Bench(a_config(auto_create_topics_enable="false")).start()
    topics = [
        MetadataRequestTopic(name=f"a-name-as-long-as-names-are-{number:06}") for number in range(30_000)
    ]
    bench.node.metadata.has_heard_of_topics = True
    began_s = process_time()

    answer = bench.ask(MetadataRequest(topics=topics), 12)

    assert {row.error_code for row in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(answer.topics) == 30_000
    assert process_time() - began_s < 2


def test_topics_that_a_client_wishes_for_are_held_against_the_others_once() -> None:
    bench = in_office()
    bench.zk_log.clear()
    names = ["a.b", "c.d", "a_b", "e.f"]

    answer = bench.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]), 12)

    refused = [row.name for row in answer.topics if row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert refused == ["a_b"]
    assert bench.children(paths.TOPICS) == ["a.b", "c.d", "e.f", "orders"]
    listings = [op for op in bench.zk_log if op == GetChildren(paths.TOPICS)]
    assert len(listings) == 1
