"""What a broker removes in ZooKeeper: what it has seen there, and never what came in its place meanwhile."""

from collections.abc import Callable

import pytest

from ottla.broker.outputs import SubmitToZooKeeper
from ottla.model.ids import BrokerId, TopicPartition
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.znodes import paths
from ottla.znodes.codec import encode_controller, encode_reassignment
from ottla.zookeeper.ops import Create, Delete, Lost, Multi, Op, SessionConnected, SessionExpired
from support.bench.controller_bench import in_office
from support.bench.node_bench import OPERATOR, Bench


def deletes(op: Op, path: str) -> bool:
    return any(isinstance(each, Delete) and each.path == path for each in getattr(op, "ops", (op,)))


def once(is_meant: Callable[[Op], bool]) -> Callable[[Op], bool | None]:
    """The first such operation is lost before it reaches anybody."""
    lost: list[Op] = []

    def lose(op: Op) -> bool | None:
        if lost or not is_meant(op):
            return None
        lost.append(op)
        return False

    return lose


def begin_session(bench: Bench, number: int) -> None:
    """The servers know nothing of the last one's end yet, and keep what it left."""
    bench.node.on_zk_session(SessionExpired(bench.session))
    bench.settle()
    bench.session = number
    bench.tree.open_session(number)
    bench.node.on_zk_session(SessionConnected(number, True))
    bench.settle()


def test_the_removal_of_an_old_registration_does_not_hit_the_new_one() -> None:
    """Two sessions end one after the other, and with the second the answer to a removal."""
    bench = Bench().start()
    bench.zk_is_held = True
    begin_session(bench, 101)
    removal: SubmitToZooKeeper | None = None
    while removal is None:
        held = bench.held.pop(0)
        if deletes(held.operation, paths.broker(1)):
            removal = held
        else:
            bench.answer(held)
            bench.settle()

    bench.zk_is_held = False
    lost, bench.held = [removal, *bench.held], []
    begin_session(bench, 102)
    for each in lost:
        bench.node.on_zk_result(each.token, Lost(maybe_applied=True))
    bench.settle()
    bench.advance(1_000)

    assert bench.tree.nodes[paths.broker(1)].stat().ephemeral_owner == 102


def test_the_removal_of_an_office_that_nobody_holds_does_not_hit_the_next_controller() -> None:
    bench = in_office(2, topics={"orders": ((1, 2),)})
    lost: list[Op] = []

    def lose(op: Op) -> bool | None:
        if not deletes(op, paths.CONTROLLER):
            return None
        lost.append(op)
        if len(lost) == 2:  # the removal is done, though its answer is lost, and another one is elected
            bench.zk(Delete(paths.CONTROLLER, 0))
            bench.zk(Create(paths.CONTROLLER, encode_controller(BrokerId(2), 1), ephemeral=True))
        return False if len(lost) <= 2 else None

    bench.lose = lose
    assert bench.node.controller.term is not None
    bench.node.controller.term.core.context.topics["orders"].partitions[0].status = None  # type: ignore[assignment]
    bench.zk(Create(paths.delete_topic("orders")))  # a mistake of ours: it gives the office back

    bench.advance(3_000)

    assert len(lost) == 2
    assert bench.tree.nodes[paths.CONTROLLER].stat().ephemeral_owner == OPERATOR


def test_a_mark_of_a_topic_that_is_not_there_is_removed_though_an_answer_is_lost() -> None:
    """It would stand in the way of a topic of that name."""
    bench = in_office(2)
    bench.lose = once(lambda op: deletes(op, paths.delete_topic("nothing")))

    bench.zk(Create(paths.delete_topic("nothing")))
    bench.advance(1_000)

    assert not bench.has(paths.delete_topic("nothing"))


@pytest.mark.parametrize("others", [{}, {TopicPartition("other", 0): (BrokerId(3),)}])
def test_the_wish_of_a_request_is_not_undone_by_the_old_tools_znode(
    others: dict[TopicPartition, tuple[BrokerId, ...]],
) -> None:
    """What it says of the partition leaves it first, though the answer to that is lost."""
    bench = in_office(2, 3, 4, topics={"orders": ((1, 2),), "other": ((1, 2),)})
    bench.silent |= {"three", "four"}
    key = TopicPartition("orders", 0)
    bench.zk(Create(paths.REASSIGN_PARTITIONS, encode_reassignment({key: (BrokerId(3),), **others})))
    assert bench.topic("orders").partitions[0].target == (3,)
    bench.lose = once(lambda op: isinstance(op, Multi) and op.ops[-1].path == paths.REASSIGN_PARTITIONS)

    wish = ReassignableTopic("orders", [ReassignablePartition(partition_index=0, replicas=(4,))])
    bench.send(bench.connect(), AlterPartitionReassignmentsRequest(topics=[wish]), 0)
    bench.advance(1_000)
    bench.expire_session(101)

    assert bench.topic("orders").partitions[0].target == (4,)
