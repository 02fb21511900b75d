"""The controller dies at each of its writes, before or after it took; the next one finishes the work.

Whatever the point, the cluster ends where it would have ended undisturbed.
"""

import pytest

from ottla.model.ids import TopicPartition
from support.bench.controller_world import ControllerWorld, assignment_text

STAGE = [
    "brokers 1 2 3 4",
    "topic orders 0=1,2,3 1=2,3,1",
    "topic payments 0=3,1",
    "elect 1",
]

WORK: dict[str, list[str]] = {
    "create": ["topic fresh 0=1,2 1=2,3 2=3,4"],
    "create by request": ["create fresh 0=1,2 1=2,3 2=3,4"],
    "add partitions by request": ["add-partitions orders 4 3,4,1 4,1,2"],
    "add partitions": ["grow orders 2=3,4,1 3=4,1,2"],
    "delete": ["delete orders"],
    "reassign": ["reassign orders-0=4,2 orders-1=4,3", "sync"],
    "cancel": [
        "reassign orders-0=4,2",
        "alter orders-0 isr=1,2,3,4",
        "reassign orders-0=3,4",
        "cancel orders-0",
    ],
    "raise and lower": ["reassign payments-0=3,1,2", "sync", "reassign payments-0=2", "sync"],
    "old reassignment": ["znode-reassign orders-0=4,2 ghost-0=1", "sync"],
    "old election": ["brokers 2 3 4", "brokers 1 2 3 4", "sync", "znode-prefer orders-0"],
    "election": ["brokers 2 3 4", "brokers 1 2 3 4", "sync", "prefer orders-0"],
    "crash": ["brokers 2 3 4"],
    "bounce": ["brokers 1 2* 3 4", "sync"],
    "shutdown": ["shutdown 2", "brokers 1 3 4", "brokers 1 2 3 4", "sync"],
    "delete while reassigned": ["reassign orders-0=4,2", "delete orders"],
    "old topic": ["old-topic legacy 0=1,2"],
}

REQUESTS = ("create", "add-partitions", "reassign", "cancel", "prefer", "shutdown", "alter")


def run(world: ControllerWorld, commands: list[str]) -> None:
    """Each command; a command that finds no controller first elects one, as the other brokers would."""
    for command in commands:
        if world.controller is None:
            world.run("elect 2")
        world.run(command)
        if world.controller is None and command.split()[0] in REQUESTS:
            # No answer came: the client asks the next controller.
            world.run("elect 2")
            world.run(command)
        answer_deletions(world)


def answer_deletions(world: ControllerWorld) -> None:
    for name in list(world.deletions):
        if world.controller is not None and name in world.topics:
            parts = " ".join(f"{name}-{index}" for index in world.topics[name].partitions)
            for number in (1, 2, 3, 4):
                if world.controller is not None and name in world.topics:
                    world.run(f"deleted {number} {parts}")


def settle(world: ControllerWorld) -> None:
    """The next controllers do what is left, in Kafka's own pace."""
    world.dies_at = None
    for _ in range(3):
        run(world, ["elect 3", "sync"])
    run(world, ["prefer all"])


def picture(world: ControllerWorld) -> dict[str, tuple[str, int, tuple[int, ...]]]:
    """Where everything stands, without the epochs."""
    found = {}
    for name, topic in world.topics.items():
        for index, assignment in topic.partitions.items():
            state = world.states[TopicPartition(name, index)]
            found[f"{name}-{index}"] = (assignment_text(assignment), state.leader, tuple(sorted(state.isr)))
    return found


def a_life(work: list[str], dies_at: tuple[int, bool] | None) -> ControllerWorld:
    world = ControllerWorld()
    world.is_quiet = True
    run(world, STAGE)
    world.orders = 0
    world.dies_at = dies_at
    run(world, work)
    return world


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_the_next_controller_finishes_whatever_the_last_one_began(work: list[str]):
    undisturbed = a_life(work, None)
    writes = undisturbed.orders
    settle(undisturbed)
    expected = picture(undisturbed)
    assert writes, "the work writes something"

    for number in range(1, writes + 1):
        for applied in (False, True):
            world = a_life(work, (number, applied))
            settle(world)

            say = f"died at write {number}, {'after' if applied else 'before'} it took"
            assert picture(world) == expected, say
            assert world.deletions == {}, say
            assert world.reassignments is None, say
            assert world.preferred is None, say
