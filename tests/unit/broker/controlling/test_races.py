"""The controller's host where two things happen at once: others' writes, and the end of the session."""

from typing import Any

import pytest

from ottla.model.cluster import BrokerRegistration, Endpoint
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from ottla.znodes import paths
from ottla.znodes.codec import decode_reassignment, encode_broker, encode_reassignment
from ottla.znodes.codec_config import ConfigNode, encode_config, encode_config_change
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Delete,
    Exists,
    Failed,
    GetData,
    Lost,
    Multi,
    Op,
    SetData,
    ZkCode,
)
from support.bench.controller_bench import ControllerBench

STATE_PATH = "/state"


def in_office(*others: int, **topics: tuple[tuple[int, ...], ...]) -> ControllerBench:
    bench = ControllerBench().start()
    bench.register(*others)
    for name, replicas in topics.items():
        bench.create_topic(name, *replicas)
    bench.told.clear()
    bench.zk_log.clear()
    return bench


def state_writes(ops: list[Any]) -> list[list[str]]:
    """The paths of each transaction that writes states."""
    found = []
    for op in ops:
        if isinstance(op, Multi):
            paths_written = [
                each.path
                for each in op.ops
                if isinstance(each, SetData | Create) and each.path.endswith(STATE_PATH)
            ]
            found += [paths_written] if paths_written else []
    return found


def test_a_topic_that_another_broker_creates_at_the_same_moment_exists_and_is_no_other_error():
    """KAFKA-7082: any broker may create topics, and the second one finds the first one's node.

    The first one's settings stay, too: without its own a compacted topic would lose its records.
    """
    settings = paths.config_entity("topics", "orders")
    compacted = encode_config(ConfigNode({"cleanup.policy": "compact"}))
    bench = ControllerBench()
    bench.serves_itself = True
    bench.start()
    bench.register(2)
    others: list[str] = []

    def create_first(op: Op) -> None:
        written = op.ops if isinstance(op, Multi) else (op,)
        own = (settings, paths.topic("orders"))
        if not others and any(isinstance(w, Create | SetData) and w.path in own for w in written):
            others.append("created")
            bench.zk(Create(settings, compacted))
            bench.create_topic("orders", (2, 1))

    bench.lose = create_first  # type: ignore[assignment]

    answer = bench.ask(
        CreateTopicsRequest(
            topics=[CreatableTopic(name="orders", num_partitions=3, replication_factor=2)], timeout_ms=1_000
        ),
        7,
    )

    assert others == ["created"]
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert bench.led("orders", 0) == (2, 0, (2, 1))
    assert len(bench.topic("orders").partitions) == 1
    assert bench.tree.nodes[settings].data == compacted


@pytest.mark.parametrize("took", [True, False])
def test_a_topic_whose_creation_is_not_answered_is_found_created_or_created_again(took: bool):
    bench = ControllerBench()
    bench.serves_itself = True
    bench.start()
    lost: list[Op] = []

    def lose_once(op: Op) -> bool | None:
        if (
            lost
            or not isinstance(op, Multi)
            or paths.topic("orders") not in [getattr(w, "path", "") for w in op.ops]
        ):
            return None
        lost.append(op)
        return took

    bench.lose = lose_once

    answer = bench.ask(CreateTopicsRequest(topics=[CreatableTopic("orders", 2, 1)], timeout_ms=1_000), 7)

    assert len(lost) == 1
    assert [(row.error_code, row.topic_id) for row in answer.topics] == [(0, bench.topic("orders").topic_id)]


def test_only_what_conflicted_is_decided_and_written_again():
    bench = in_office(2, 3, orders=((2, 1, 3),) * 5)
    bench.set_state("orders", 3, leader=2, isr=(2, 3))
    bench.zk_log.clear()

    bench.unregister(2)

    assert [bench.led("orders", i)[0] for i in range(5)] == [1, 1, 1, 3, 1]
    first, again, redecided = state_writes(bench.zk_log)
    conflicted = "/brokers/topics/orders/partitions/3/state"
    assert len(first) == 5
    assert conflicted not in again, "what did not conflict is written as it was decided"
    assert redecided == [conflicted]


def test_a_session_that_ends_in_mid_turn_ends_the_turn_where_it_stands():
    """The write's fate is unknown: neither memory nor brokers follow it, the next term reads what stands."""
    bench = in_office(2, 3, orders=((2, 1, 3),))
    bench.zk_is_held = True
    bench.unregister(2)
    while not state_writes([held.operation for held in bench.held]):
        bench.answer(bench.held.pop(0))
        bench.settle()
    term = bench.node.controller.term
    assert term is not None
    held, bench.held = bench.held, []
    bench.told.clear()

    bench.zk_is_held = False
    bench.expire_session(101)
    spoken = len(bench.told)
    for late in held:
        bench.node.on_zk_result(late.token, Lost(maybe_applied=True))
    bench.settle()

    assert term.is_over
    assert len(bench.told) == spoken, "the dead term says nothing more"
    assert all(request.controller_epoch == 2 for _, request in bench.told)
    assert bench.led("orders", 0) == (1, 1, (1, 3)), "the next term decided it, once"


def test_a_broker_whose_session_ends_while_it_looks_for_a_controller_stands_in_the_next() -> None:
    bench = in_office(2)
    bench.zk_is_held = True
    bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
    held, bench.held = bench.held, []
    assert any(isinstance(each.operation, Exists) for each in held), "it looks who has the office"

    bench.zk_is_held = False
    bench.expire_session(101)
    for late in held:
        bench.node.on_zk_result(late.token, Lost(maybe_applied=False))
    bench.settle()

    assert bench.node.controller.is_active


def test_a_term_that_is_fenced_in_mid_turn_tells_nobody_what_it_could_not_write():
    bench = in_office(2, 3, orders=((2, 1, 3),))
    bench.zk_is_held = True
    bench.unregister(2)
    while not state_writes([held.operation for held in bench.held]):
        bench.answer(bench.held.pop(0))
        bench.settle()
    bench.told.clear()
    deliver = bench.deliver
    bench.deliver = lambda fired: None  # type: ignore[method-assign]
    bench.depose(by=3)
    bench.deliver = deliver  # type: ignore[method-assign]

    bench.zk_is_held = False
    for held in list(bench.held):
        bench.answer(held)
    bench.settle()

    assert not bench.node.controller.is_active
    assert bench.led("orders", 0) == (2, 0, (2, 1, 3))
    assert bench.told == []


def test_an_office_that_zookeeper_does_not_show_is_not_given_up():
    bench = in_office(2)
    term = bench.node.controller.term
    bench.zk_is_held = True
    bench.zk(SetData(paths.CONTROLLER, bench.tree.nodes[paths.CONTROLLER].data, ANY_VERSION))
    (look,) = bench.held
    bench.held, bench.zk_is_held = [], False

    bench.node.on_zk_result(look.token, Failed(ZkCode.THROTTLED_OP))
    bench.settle()
    bench.advance(2_000)

    assert bench.node.controller.term is term


def test_a_controller_epoch_that_zookeeper_does_not_show_is_asked_for_again_after_a_pause():
    bench = in_office(2)
    bench.zk_is_held = True
    bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
    asked = 0

    def answer_all() -> None:
        nonlocal asked
        for held in [bench.held.pop(0) for _ in bench.held[:50]]:
            if isinstance(held.operation, GetData) and held.operation.path == paths.CONTROLLER_EPOCH:
                asked += 1
                bench.node.on_zk_result(held.token, Failed(ZkCode.THROTTLED_OP))
            else:
                bench.answer(held)
            bench.settle()

    for _ in range(50):
        answer_all()
    assert asked == 1

    bench.zk_is_held = False
    bench.advance(2_000)
    assert bench.node.controller.is_active


@pytest.mark.parametrize("path", [paths.broker(2), paths.topic("orders")])
def test_what_zookeeper_refuses_to_show_is_not_taken_for_gone(path: str):
    """An overloaded server may put off even reads; a broker that was not shown is not dead for that."""
    bench = in_office(2, 3, orders=((2, 1, 3),))
    bench.zk_is_held = True
    for watched in (paths.broker(3), paths.topic("orders")):
        bench.zk(SetData(watched, bench.tree.nodes[watched].data, ANY_VERSION))
    while bench.held:
        held = bench.held.pop(0)
        if isinstance(held.operation, GetData) and held.operation.path == path:
            bench.node.on_zk_result(held.token, Failed(ZkCode.THROTTLED_OP))
        else:
            bench.answer(held)
        bench.settle()

    assert bench.led("orders", 0) == (2, 0, (2, 1, 3))
    assert not bench.node.controller.is_active, "it gives way, and may see better later"
    bench.zk_is_held = False
    bench.advance(1_000)
    assert bench.node.controller.is_active
    assert bench.led("orders", 0) == (2, 0, (2, 1, 3))


def test_a_broker_that_moves_while_the_next_one_is_read_is_read_again():
    bench = in_office(2)
    moved: list[str] = []

    def move(op: Op) -> None:
        if isinstance(op, GetData) and op.path == paths.broker(4) and not moved:
            moved.append("three")
            there = BrokerRegistration(BrokerId(3), -1, (Endpoint("PLAINTEXT", "elsewhere", 9092),))
            bench.zk(SetData(paths.broker(3), encode_broker(there, 1), ANY_VERSION))

    bench.lose = move  # type: ignore[assignment]
    bench.zk_is_held = True
    bench.register(3, 4)
    bench.zk_is_held = False
    while bench.held:
        bench.answer(bench.held.pop(0))
        bench.settle()

    assert moved == ["three"]
    last = bench.told_of(UpdateMetadataRequest)[-1][1]
    assert [e.host for b in last.live_brokers if b.id == 3 for e in b.endpoints] == ["elsewhere"]


def test_unclean_election_allowed_for_all_brokers_ends_the_waiting_at_once() -> None:
    """As kafka-configs --entity-type brokers --entity-default does it; a topic may still forbid it."""
    bench = in_office(2, strict=((2, 1),), loose=((2, 1),))
    forbidden = b'{"version":1,"config":{"unclean.leader.election.enable":"false"}}'
    bench.zk(Create(paths.config_entity("topics", "strict"), forbidden))
    for topic in ("strict", "loose"):
        bench.set_state(topic, 0, leader=2, isr=(2,))
    bench.unregister(2)
    assert bench.led("loose", 0)[0] == -1

    allowed = b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'
    bench.zk(Create(paths.config_entity("brokers", paths.DEFAULT_ENTITY), allowed))
    note = encode_config_change("brokers/<default>")
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, note, sequential=True))

    assert bench.led("loose", 0) == (1, 2, (1,))
    assert bench.led("strict", 0)[0] == -1


def test_the_deletion_of_a_topic_rewrites_the_old_tools_znode_once() -> None:
    """Not once for each of its partitions."""
    bench = in_office(2, orders=tuple((1,) for _ in range(20)), kept=((1,),))
    moves = {TopicPartition("orders", index): (BrokerId(2),) for index in range(20)}
    moves[TopicPartition("kept", 0)] = (BrokerId(2),)
    bench.zk(Create(paths.REASSIGN_PARTITIONS, encode_reassignment(moves)))
    bench.zk_log.clear()

    bench.zk(Create(paths.delete_topic("orders")))

    written = [
        op
        for op in bench.zk_log
        if isinstance(op, Multi) and any(each.path == paths.REASSIGN_PARTITIONS for each in op.ops)
    ]
    assert len(written) == 1
    assert decode_reassignment(bench.data(paths.REASSIGN_PARTITIONS)) == {TopicPartition("kept", 0): (2,)}


def test_a_topic_that_is_made_again_while_others_are_still_being_removed_is_not_removed_along() -> None:
    """Nodes, settings and marks of a topic go at one stroke; whatever has its name afterwards is new."""
    bench = in_office(2, orders=((1,),), large=((1,),) * 250)
    torn: list[Op] = []
    made: list[str] = []

    def make_again(op: Op) -> None:
        is_there, is_marked = bench.has(paths.topic("orders")), bench.has(paths.delete_topic("orders"))
        if is_there != is_marked and not made:
            torn.append(op)
        if not is_there and not is_marked and not made:
            made.append("orders")
            bench.create_topic("orders", (2,), (2,))

    bench.zk_is_held = True
    bench.zk(Create(paths.delete_topic("large")))
    bench.zk(Create(paths.delete_topic("orders")))
    bench.zk_is_held = False
    bench.lose = make_again  # type: ignore[assignment]
    held, bench.held = bench.held, []
    for each in held:
        bench.answer(each)
    bench.settle()
    bench.advance(1_000)

    assert made == ["orders"]
    assert torn == []
    assert bench.children(paths.TOPICS) == ["orders"]
    assert bench.children(paths.DELETE_TOPICS) == []
    assert [bench.led("orders", index)[0] for index in (0, 1)] == [2, 2]


def test_removals_of_topics_whose_answer_is_lost_are_made_again_or_found_done() -> None:
    for is_applied in (True, False):
        bench = in_office(2, orders=((1,),), payments=((2,),))
        lost: list[Op] = []

        def lose(op: Op, lost: list[Op] = lost, is_applied: bool = is_applied) -> bool | None:
            if not isinstance(op, Multi) or len(lost) > 2:
                return None
            if not any(isinstance(each, Delete) and each.path == paths.topic("orders") for each in op.ops):
                return None
            lost.append(op)
            return is_applied

        bench.lose = lose
        bench.zk(Create(paths.delete_topic("orders")))
        bench.advance(1_000)

        assert len(lost) == (1 if is_applied else 3)
        assert bench.children(paths.TOPICS) == ["payments"]
        assert bench.children(paths.DELETE_TOPICS) == []
