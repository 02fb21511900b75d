"""What CreatePartitions may ask for, as a table; and what comes of it."""

import pytest

from ottla.controller.core import Controller
from ottla.controller.effects import Answer, PartitionsAdded, ReadTopics, Resign, WriteTopics
from ottla.controller.events import (
    Breathed,
    PartitionsRequested,
    PartitionsWanted,
    TopicChanged,
    TopicFound,
    TopicsRead,
    TopicsWritten,
)
from ottla.controller.placement import PlacementRule
from ottla.model.errors import GRANTED, Refusal
from ottla.model.errors import ErrorCode as E
from ottla.model.ids import BrokerId
from ottla.model.partition_state import ReplicaAssignment
from support.bench.controller_world import ControllerWorld

TOO_LARGE = Refusal(E.INVALID_PARTITIONS, "too large")


def in_office(*commands: str) -> ControllerWorld:
    world = ControllerWorld()
    for command in ("brokers 1 2", "topic orders 0=1,2 1=2,1", "elect 1", *commands):
        world.run(command)
    world.effects.clear()
    return world


def grow(world: ControllerWorld, text: str) -> Refusal:
    world.run(f"add-partitions {text}")
    [answer] = [effect for effect in world.effects if isinstance(effect, Answer)]
    assert isinstance(answer.result, PartitionsAdded)
    [refusal] = answer.result.results.values()
    return refusal


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ("ghost 3", E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'ghost' does not exist."),
        (
            "orders 1",
            E.INVALID_PARTITIONS,
            "currently has 2 partitions, which is higher than the requested 1.",
        ),
        ("orders 2", E.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        ("orders 500001", E.INVALID_PARTITIONS, "must not be larger than 500000."),
        ("orders 3 1,9", E.INVALID_REPLICA_ASSIGNMENT, "Unknown broker(s) in replica assignment: 9."),
        ("orders 4 1,2", E.INVALID_REPLICA_ASSIGNMENT, "by 2 but 1 assignments provided."),
        ("orders 3 1", E.INVALID_REPLICA_ASSIGNMENT, "Inconsistent replication factor"),
        ("orders 3 1,1", E.INVALID_REPLICA_ASSIGNMENT, "Duplicate replica"),
    ],
)
def test_what_is_refused_and_why(asked: str, error: E, words: str) -> None:
    world = in_office()

    refusal = grow(world, asked)

    assert refusal.error == error
    assert words in (refusal.why or "")
    assert not [effect for effect in world.effects if isinstance(effect, WriteTopics)]


@pytest.mark.parametrize(
    ("before", "error"),
    [
        (["brokers 1 2 3", "reassign orders-0=3,2"], E.REASSIGNMENT_IN_PROGRESS),
        (["delete orders"], E.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_does_not_grow_while_it_is_moved_or_deleted(before: list[str], error: E) -> None:
    assert grow(in_office(*before), "orders 3").error == error


def test_a_topic_that_the_controller_does_not_know_yet_grows_and_its_watch_brings_the_leaders() -> None:
    world = in_office()
    found = world.topics["orders"]
    world.topics["unseen"] = TopicFound(found.topic_id[::-1], found.partitions)  # type: ignore[arg-type]

    assert grow(world, "unseen 3") == GRANTED
    assert world.written[-1][0].topic == "orders"

    world.run("watch-fires")
    assert len([key for key in world.states if key.topic == "unseen"]) == 3


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [
        (TopicsWritten(frozenset({"orders"})), "The topic 'orders' does not exist."),
        (TopicsWritten(refused={"orders": TOO_LARGE}), "too large"),
    ],
)
def test_what_zookeeper_does_not_take_is_refused_and_the_term_goes_on(
    outcome: TopicsWritten, refusal: str
) -> None:
    controller, write = up_to_the_write()

    effects = controller.handle(outcome)

    assert write.topics["orders"][1].keys() == {0, 1, 2}
    [answer] = effects
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, PartitionsAdded)
    assert answer.result.results["orders"].why == refusal
    assert len(controller.context.topics["orders"].partitions) == 2


def test_a_controller_whose_own_work_zookeeper_does_not_take_resigns() -> None:
    world = in_office()
    assert world.controller is not None
    rewritten = TopicFound(world.topics["orders"].topic_id, world.topics["orders"].partitions, id_is_new=True)
    [write] = world.controller.handle(TopicChanged("orders", rewritten))
    assert isinstance(write, WriteTopics)

    [resigned] = world.controller.handle(TopicsWritten(refused={"orders": TOO_LARGE}))

    assert resigned == Resign("the assignment of orders cannot be written: too large")


def test_a_partition_that_somebody_else_spoilt_is_written_back_and_not_taken_into_memory() -> None:
    controller, write = up_to_the_write({2: ReplicaAssignment(())})

    controller.handle(TopicsWritten())

    assert write.topics["orders"][1][2] == ReplicaAssignment(())
    assert controller.context.topics["orders"].partitions.keys() == {0, 1, 3}


def up_to_the_write(
    others: dict[int, ReplicaAssignment] | None = None,
) -> tuple[Controller, WriteTopics]:
    """A controller that wants to write one more partition."""
    world = in_office()
    controller, found = world.controller, world.topics["orders"]
    assert controller is not None
    wanted = (PartitionsWanted("orders", 3 + len(others or ()), ((BrokerId(1), BrokerId(2)),)),)
    [read] = controller.handle(PartitionsRequested(1, wanted, False, PlacementRule.SHIFTED))
    assert read == ReadTopics(("orders",), "CreatePartitions")
    partitions = {**found.partitions, **(others or {})}
    seen = TopicsRead(frozenset({"orders"}), frozenset(), {"orders": TopicFound(found.topic_id, partitions)})
    controller.handle(seen)
    [write] = controller.handle(Breathed())
    assert isinstance(write, WriteTopics)
    return controller, write
