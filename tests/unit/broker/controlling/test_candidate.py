"""The controller's host on the bench: election, turns, fences, conflicts, lost answers."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.controller.core import Controller
from ottla.model.ids import BrokerId
from ottla.model.partition_state import LeaderAndIsr
from ottla.wire.apis.elect_leaders import ElectLeadersRequest
from ottla.wire.apis.leader_and_isr import LeaderAndIsrRequest
from ottla.wire.apis.stop_replica import StopReplicaRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from ottla.znodes import paths
from ottla.znodes.codec import TopicNode, encode_reassignment, encode_topic
from ottla.znodes.codec_config import encode_log_dir_event
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Failed,
    GetData,
    Multi,
    SessionConnected,
    SessionSuspended,
    SetData,
    ZkCode,
)
from support.bench.controller_bench import ControllerBench, in_office

STATE_PATH = "/state"


def writes_states(op: object) -> bool:
    return isinstance(op, Multi) and any(each.path.endswith(STATE_PATH) for each in op.ops)


class TestElection:
    def test_the_first_broker_becomes_controller_with_epoch_one(self):
        bench = ControllerBench().start()

        assert bench.node.controller.is_active
        assert bench.data(paths.CONTROLLER_EPOCH) == b"1"
        assert b'"brokerid":1' in (bench.data(paths.CONTROLLER) or b"")
        assert b'"version":2' in (bench.data(paths.FEATURE) or b"")
        assert [host for host, _ in bench.told_of(UpdateMetadataRequest)] == ["one"]

    def test_a_broker_that_finds_a_controller_waits_until_it_is_gone(self):
        bench = ControllerBench()
        bench.tree.open_session(900)
        bench.tree.apply(Create(paths.CONTROLLER, b'{"brokerid":7}', ephemeral=True), 900, 1)
        bench.tree.apply(Create(paths.CONTROLLER_EPOCH, b"41"), 900, 1)
        bench.start()
        assert not bench.node.controller.is_active
        assert bench.node.controller.active_controller == 7

        bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))

        assert bench.node.controller.is_active
        assert bench.data(paths.CONTROLLER_EPOCH) == b"42"

    @pytest.mark.parametrize("applied", [True, False])
    def test_a_lost_answer_to_the_election_is_found_out(self, applied: bool):
        bench = ControllerBench()
        lost = []

        def lose(op: object) -> bool | None:
            if isinstance(op, Multi) and op.ops[0].path == paths.CONTROLLER and not lost:
                lost.append(op)
                return applied
            return None

        bench.lose = lose
        bench.start()
        bench.advance(1_000)

        assert lost
        assert bench.node.controller.is_active
        assert bench.data(paths.CONTROLLER_EPOCH) == b"1"

    def test_a_controller_node_that_is_no_json_is_respected(self):
        bench = ControllerBench()
        bench.tree.open_session(900)
        bench.tree.apply(Create(paths.CONTROLLER, b"{{{", ephemeral=True), 900, 1)

        bench.start()

        assert not bench.node.controller.is_active

    def test_a_deposed_controller_resigns_when_it_hears_of_it(self):
        bench = in_office(2)

        bench.depose(by=2)

        assert not bench.node.controller.is_active
        assert bench.node.controller.active_controller == 2

    def test_a_zombie_is_fenced_at_its_first_write(self):
        """It does not know yet that another was elected: its watches are late (KAFKA-6082)."""
        bench = in_office(2, topics={"orders": ((1, 2),)})
        deliver = bench.deliver
        bench.deliver = lambda fired: None  # type: ignore[method-assign]
        bench.depose(by=2)
        assert bench.node.controller.is_active

        bench.deliver = deliver  # type: ignore[method-assign]
        bench.unregister(2)

        assert not bench.node.controller.is_active
        assert bench.led("orders", 0) == (1, 0, (1, 2))
        assert b'"brokerid":2' in (bench.data(paths.CONTROLLER) or b"")

    def test_session_expiry_ends_the_term_and_the_next_one_knows_nothing_of_it(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        first = bench.node.controller.term
        epoch = bench.node.identity.broker_epoch

        bench.expire_session(101)

        second = bench.node.controller.term
        assert second is not None
        assert second is not first
        assert first is not None
        assert first.is_over
        assert bench.data(paths.CONTROLLER_EPOCH) == b"2"
        assert bench.node.identity.broker_epoch > epoch

    def test_nothing_of_a_term_listens_any_more_once_it_is_over(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})

        bench.depose(by=2)

        assert bench.node.zk._watchers.keys() == ControllerBench().node.zk._watchers.keys()

    def test_who_waits_at_expiry_hears_that_this_is_not_the_controller(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        bench.zk_is_held = True
        bench.unregister(2)
        connection = bench.connect()
        bench.send(connection, ElectLeadersRequest(topic_partitions=None), 2)
        assert bench.written == []

        bench.zk_is_held = False
        bench.expire_session(101)

        assert len(bench.written) == 1

    def test_a_controller_that_leaves_gives_the_office_back_at_once(self):
        bench = in_office(2)

        bench.node.controller.stop()
        bench.settle()

        assert not bench.has(paths.CONTROLLER)

    def test_a_mistake_of_ours_makes_it_give_way_and_stand_again_later(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        assert bench.node.controller.term is not None
        bench.node.controller.term.core.context.partitions.clear()
        bench.node.controller.term.core.context.topics["orders"].partitions[0].status = None  # type: ignore[assignment]

        bench.zk(Create(paths.delete_topic("orders")))

        assert not bench.node.controller.is_active
        assert not bench.has(paths.CONTROLLER)
        bench.advance(1_500)
        assert bench.node.controller.is_active
        assert bench.data(paths.CONTROLLER_EPOCH) == b"2"

    @pytest.mark.parametrize("mistake", [RuntimeError("changed size"), OSError("?"), RecursionError()])
    def test_no_kind_of_mistake_leaves_a_controller_that_does_nothing(
        self, mistake: Exception, monkeypatch: pytest.MonkeyPatch
    ):
        bench = in_office(2)
        with monkeypatch.context() as broken:
            broken.setattr(Controller, "handle", a_failure(mistake))
            with pytest.raises(type(mistake)):
                bench.create_topic("orders", (1, 2))

        bench.settle()
        bench.advance(1_500)

        assert bench.node.controller.is_serving
        assert bench.led("orders", 0) == (1, 0, (1, 2))

    def test_a_mistake_of_one_who_waited_for_the_office_does_not_keep_it_from_standing_again(self):
        bench = in_office(2)
        bench.zk_is_held = True
        bench.depose(by=2)
        bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
        while not bench.node.controller.is_active or bench.node.controller.is_serving:
            bench.answer(bench.held.pop(0))
            bench.settle()
        bench.node.controller.when_serving(a_failure(KeyError("who")))
        with pytest.raises(KeyError):
            bench.node.on_zk_result(bench.held.pop(0).token, Failed(ZkCode.THROTTLED_OP))
        bench.settle()

        bench.zk_is_held = False
        for held in bench.held:
            bench.answer(held)
        bench.advance(1_500)

        assert bench.node.controller.is_serving


def a_failure(mistake: Exception) -> Callable[..., Any]:
    """Whoever calls it finds out."""

    def fail(*arguments: object) -> Any:
        raise mistake

    return fail


def sizes_of_orders(bench: ControllerBench, host: str) -> list[int]:
    """How many partitions each LeaderAndIsr request to that broker names."""
    return [
        sum(len(topic.partition_states) for topic in request.topic_states)
        for to, request in bench.told_of(LeaderAndIsrRequest)
        if to == host
    ]


class TestWrites:
    def test_every_write_of_the_controller_is_fenced_by_its_epoch(self):
        bench = in_office(2, 3)
        fence = Check(paths.CONTROLLER_EPOCH, 1)

        bench.create_topic("orders", (1, 2, 3), (2, 3, 1))
        bench.unregister(3)
        bench.zk(Create(paths.LOG_DIR_EVENT_PREFIX, encode_log_dir_event(BrokerId(2)), sequential=True))
        bench.register(3)
        bench.zk(Create(paths.delete_topic("orders")))

        written = [op for op in bench.zk_log if isinstance(op, Multi)]
        loose = [op for op in bench.zk_log if isinstance(op, Create | Delete | SetData)]
        assert len(written) >= 4
        assert all(op.ops[0] == fence for op in written)
        assert loose == []
        assert not bench.has(paths.topic("orders"))

    def test_a_new_topic_gets_states_in_few_transactions_and_everybody_hears(self):
        bench = in_office(2, 3)

        bench.create_topic("orders", *[(1 + i % 3, 1 + (i + 1) % 3) for i in range(1_000)])

        assert bench.state("orders", 999) == LeaderAndIsr(1, 0, (1, 2), 0, 1)  # type: ignore[arg-type]
        assert len([op for op in bench.zk_log if writes_states(op)]) <= 6
        told = bench.told_of(LeaderAndIsrRequest)
        assert sorted(host for host, _ in told) == ["one", "three", "two"], "667 partitions fit one request"
        assert all(row.is_new for _, r in told for t in r.topic_states for row in t.partition_states)
        metadata = bench.told_of(UpdateMetadataRequest)
        assert sorted(host for host, _ in metadata) == ["one", "three", "two"]

    def test_a_broker_hears_of_thousands_of_partitions_in_several_requests_and_of_the_metadata_last(self):
        bench = in_office(2)

        bench.create_topic("orders", *[(1, 2)] * 2_500)

        heard = [request for host, request in bench.told if host == "two"]
        sizes = [len(r.topic_states[0].partition_states) for r in heard]
        assert [type(r) for r in heard] == [LeaderAndIsrRequest] * 3 + [UpdateMetadataRequest]
        assert sizes == [1_000, 1_000, 500, 2_500]

    def test_a_broker_that_comes_hears_of_all_its_partitions_at_once(self):
        """An Apache broker notes high watermarks after its first LeaderAndIsr, and forgets the rest."""
        bench = in_office(2, 3, topics={"orders": ((2, 3),) * 2_500})
        bench.unregister(2)
        bench.told.clear()

        bench.register(2)
        assert sizes_of_orders(bench, "two") == [2_500]

        bench.told.clear()
        bench.unregister(3)
        assert sizes_of_orders(bench, "two") == [1_000, 1_000, 500]

    def test_so_it_does_from_a_controller_that_has_just_been_elected(self):
        first = in_office(2, topics={"orders": ((2, 1),) * 2_500})
        next_one = ControllerBench(tree=first.tree)
        next_one.session = 200
        next_one.deliver(first.tree.end_session(first.session))
        next_one.start()

        assert next_one.node.controller.is_active
        assert sizes_of_orders(next_one, "two")[0] == 2_500

    def test_added_partitions_are_created_beside_the_others(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        node = bench.topic("orders")
        grown = {**node.partitions, 1: node.partitions[0], 2: node.partitions[0]}

        bench.zk(SetData(paths.topic("orders"), encode_topic(TopicNode(node.topic_id, grown)), ANY_VERSION))

        assert bench.led("orders", 2) == (1, 0, (1, 2))
        assert len([op for op in bench.zk_log if writes_states(op)]) == 1

    def test_parents_that_a_dead_controller_left_are_used(self):
        bench = in_office(2)
        content = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAw","partitions":{"0":[1,2],"1":[2,1]}}'

        bench.zk(
            Multi(
                (
                    Create(paths.topic("orders"), content),
                    Create("/brokers/topics/orders/partitions"),
                    Create("/brokers/topics/orders/partitions/1"),
                )
            )
        )

        assert bench.led("orders", 0) == (1, 0, (1, 2))
        assert bench.led("orders", 1) == (2, 0, (2, 1))

    def test_a_conflict_is_decided_again_from_what_stands_there(self):
        bench = in_office(2, 3, topics={"orders": ((2, 1, 3), (2, 1, 3))})
        bench.set_state("orders", 0, leader=2, isr=(2, 3))

        bench.unregister(2)

        assert bench.led("orders", 0) == (3, 1, (3,))
        assert bench.led("orders", 1) == (1, 1, (1, 3))

    @pytest.mark.parametrize("applied", [True, False])
    def test_a_state_write_whose_answer_is_lost_is_read_back(self, applied: bool):
        bench = in_office(2, 3, topics={"orders": ((2, 1, 3), (3, 2, 1))})
        lost = []

        def lose(op: object) -> bool | None:
            if writes_states(op) and not lost:
                lost.append(op)
                return applied
            return None

        bench.lose = lose
        bench.unregister(2)

        assert lost
        assert bench.led("orders", 0) == (1, 1, (1, 3))
        assert bench.led("orders", 1) == (3, 1, (3, 1))
        last = bench.told_of(LeaderAndIsrRequest)[-1][1]
        assert [row.leader_epoch for t in last.topic_states for row in t.partition_states] == [1, 1]

    @pytest.mark.parametrize("applied", [True, False])
    def test_a_creation_whose_answer_is_lost_is_read_back(self, applied: bool):
        bench = in_office(2)
        lost = []

        def lose(op: object) -> bool | None:
            if writes_states(op) and not lost:
                lost.append(op)
                return applied
            return None

        bench.lose = lose
        bench.create_topic("orders", (1, 2), (2, 1))

        assert lost
        assert bench.led("orders", 0) == (1, 0, (1, 2))
        assert bench.led("orders", 1) == (2, 0, (2, 1))

    def test_partitions_added_while_a_topic_is_rewritten_are_kept(self):
        bench = in_office(2, 3, topics={"orders": ((1, 2),)})
        node = bench.topic("orders")
        grown = encode_topic(
            TopicNode(node.topic_id, {**node.partitions, 1: node.partitions[0]}, {"colour": "green"})
        )
        bench.deliver, deliver = (lambda fired: None), bench.deliver  # type: ignore[method-assign]
        bench.zk(SetData(paths.topic("orders"), grown, ANY_VERSION))
        bench.deliver = deliver  # type: ignore[method-assign]

        bench.zk(Create(paths.REASSIGN_PARTITIONS, encode_reassignment({("orders", 0): (3, 2)})))  # type: ignore[dict-item]

        written = bench.topic("orders")
        assert written.partitions[0].adding == (3,)
        assert written.partitions[1].replicas == (1, 2)
        assert written.other == {"colour": "green"}
        assert written.topic_id == node.topic_id

    def test_a_deleted_topic_leaves_nothing_behind(self):
        bench = in_office(2, topics={"orders": ((1, 2), (2, 1)), "payments": ((1, 2),)})
        bench.zk(Create("/config/topics/orders", b'{"version":1,"config":{}}'))

        bench.zk(Create(paths.delete_topic("orders")))

        assert bench.children(paths.TOPICS) == ["payments"]
        assert bench.children(paths.CONFIG_TOPICS) == []
        assert bench.children(paths.DELETE_TOPICS) == []
        assert [h for h, r in bench.told_of(StopReplicaRequest)] == ["one", "two"]
        assert bench.led("payments", 0) == (1, 0, (1, 2))

    def test_deletion_waits_for_a_broker_that_refused_until_its_next_life(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        bench.delete_errors.add("two")
        bench.zk(Create(paths.delete_topic("orders")))
        assert bench.has(paths.topic("orders"))

        bench.delete_errors.clear()
        bench.unregister(2)
        bench.register(2)

        assert not bench.has(paths.topic("orders"))


class TestTurns:
    def test_events_wait_for_the_write_of_the_running_turn(self):
        bench = in_office(2, 3, topics={"orders": ((2, 3, 1),)})
        bench.zk_is_held = True
        bench.unregister(2)
        while bench.held and not writes_states(bench.held[0].operation):
            bench.answer(bench.held.pop(0))
            bench.settle()

        bench.unregister(3)
        assert [op.operation for op in bench.held if not writes_states(op.operation)] == []

        bench.zk_is_held = False
        bench.answer(bench.held.pop(0))
        bench.settle()
        assert bench.led("orders", 0) == (1, 2, (1,))

    def test_a_connection_that_comes_back_with_the_same_session_changes_nothing(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        term = bench.node.controller.term

        bench.node.on_zk_session(SessionSuspended())
        bench.node.on_zk_session(SessionConnected(bench.session, False))
        bench.settle()

        assert bench.node.controller.term is term
        assert bench.data(paths.CONTROLLER_EPOCH) == b"1"

    def test_a_topic_that_comes_while_failover_reads_is_not_missed(self):
        bench = ControllerBench()
        bench.zk_is_held = True
        bench.start()
        made = False
        while bench.held:
            submitted = bench.held.pop(0)
            bench.answer(submitted)
            op = submitted.operation
            if not made and isinstance(op, GetData) is False and getattr(op, "path", "") == paths.TOPICS:
                made = getattr(op, "watch", False)
                if made:
                    bench.zk_is_held = True
                    bench.create_topic("late", (1,))
            bench.settle()

        assert made
        assert bench.led("late", 0) == (1, 0, (1,))

    def test_a_hundred_hints_are_one_look(self):
        bench = in_office(2)
        bench.zk_is_held = True

        for number in range(100):
            bench.create_topic(f"topic{number}", (1, 2))
        bench.zk_is_held = False
        while bench.held:
            bench.answer(bench.held.pop(0))
            bench.settle()

        assert bench.led("topic99", 0) == (1, 0, (1, 2))
        assert len([op for op in bench.zk_log if writes_states(op)]) <= 2
