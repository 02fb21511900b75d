"""``ottla.replica.placement=plain`` holds for every topic, however it comes to be, and when it grows."""

import pytest

from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.bench.controller_bench import ControllerBench, serving
from unit.broker.apis.topics.test_controller_apis import a_topic, create, grow

PLAIN = {0: (1, 2), 1: (2, 3), 2: (3, 1), 3: (1, 2), 4: (2, 3), 5: (3, 1)}
SETTINGS = {
    "ottla_replica_placement": "plain",
    "num_partitions": 6,
    "default_replication_factor": 2,
    "offsets_topic_num_partitions": 6,
    "offsets_topic_replication_factor": 2,
}


def placed(bench: ControllerBench, topic: str) -> dict[int, tuple[int, ...]]:
    return {index: tuple(each.replicas) for index, each in bench.topic(topic).partitions.items()}


def test_a_topic_that_is_asked_for_is_placed_plainly() -> None:
    bench = serving(3, 2, **SETTINGS)

    create(bench, a_topic(partitions=6))

    assert placed(bench, "orders") == PLAIN


@pytest.mark.parametrize("name", ["orders", "__consumer_offsets"])
def test_a_topic_that_comes_to_be_by_itself_is_placed_plainly(name: str) -> None:
    bench = serving(3, 2, **SETTINGS)

    topics = [MetadataRequestTopic(name=name)]
    bench.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9)

    assert placed(bench, name) == PLAIN


def test_partitions_that_are_added_are_placed_plainly() -> None:
    bench = serving(3, 2, topics={"orders": ((2, 1),)}, **SETTINGS)

    assert grow(bench, 6) == [(0, None)]

    assert placed(bench, "orders") == {**PLAIN, 0: (2, 1)}
