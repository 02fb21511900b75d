"""The controller's APIs for leaders and brokers, asked of a node in office that also hears its own orders."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode as E
from ottla.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.apis.alter_partition import AlterPartitionRequest
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.headers import decode_response
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, SessionExpired, SetData
from support.bench.controller_bench import ControllerBench, out_of_office, serving


class TestElectLeaders:
    def elect(self, bench: ControllerBench, kind: int, partitions: tuple[int, ...] | None) -> Any:
        asked = None if partitions is None else [TopicPartitions(topic="orders", partitions=partitions)]
        answer = bench.ask(ElectLeadersRequest(election_type=kind, topic_partitions=asked), 2)
        return {
            row.partition_id: row.error_code
            for topic in answer.replica_election_results
            for row in topic.partition_result
        }

    def astray(self) -> ControllerBench:
        bench = serving(2, topics={"orders": ((2, 1), (1, 2))})
        bench.unregister(2)
        bench.register(2)
        return bench

    def test_preferred_leaders_that_are_behind_cannot_lead(self):
        assert self.elect(self.astray(), 0, (0, 1, 7)) == {
            0: E.PREFERRED_LEADER_NOT_AVAILABLE,
            1: E.ELECTION_NOT_NEEDED,
            7: E.UNKNOWN_TOPIC_OR_PARTITION,
        }

    def test_asked_for_all_only_elections_are_named(self):
        assert self.elect(self.astray(), 0, None) == {0: E.PREFERRED_LEADER_NOT_AVAILABLE}

    def test_unclean_election_takes_who_is_there(self):
        bench = serving(2, topics={"orders": ((2, 1),)})
        bench.set_state("orders", 0, leader=2, isr=(2,))
        bench.unregister(2)
        assert bench.led("orders", 0)[0] == -1

        assert self.elect(bench, 1, (0,)) == {0: 0}

        assert bench.led("orders", 0) == (1, 2, (1,))
        assert bench.node.metadata.topics["orders"].partitions[0].leader == 1

    def test_unclean_election_finds_nobody(self):
        bench = serving(2, topics={"orders": ((2,),)})
        bench.unregister(2)

        assert self.elect(bench, 1, (0,)) == {0: E.ELIGIBLE_LEADERS_NOT_AVAILABLE}

    @pytest.mark.parametrize("asked", [(0, 1), None])
    def test_another_broker_refuses_each_partition(self, asked: tuple[int, ...] | None):
        bench = serving(2, topics={"orders": ((1, 2), (2, 1))})
        bench.depose(by=2)

        assert self.elect(bench, 0, asked) == {0: E.NOT_CONTROLLER, 1: E.NOT_CONTROLLER}


class TestProducerIds:
    def allocate(self, bench: ControllerBench, broker: int = 1, epoch: int | None = None) -> Any:
        own = bench.node.identity.broker_epoch
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=own if epoch is None else epoch)
        answer = bench.ask(request, 0)
        return answer.error_code, answer.producer_id_start, answer.producer_id_len

    def test_blocks_follow_one_another(self):
        bench = serving()

        assert [self.allocate(bench) for _ in range(3)] == [(0, 0, 1000), (0, 1000, 1000), (0, 2000, 1000)]

        assert b'"block_start":"2000"' in (bench.data(paths.LATEST_PRODUCER_ID_BLOCK) or b"")

    @pytest.mark.parametrize("applied", [True, False])
    def test_a_lost_answer_never_gives_a_block_twice(self, applied: bool):
        bench = serving()
        lost: list[object] = []

        def lose(op: object) -> bool | None:
            if isinstance(op, SetData) and op.path == paths.LATEST_PRODUCER_ID_BLOCK and not lost:
                lost.append(op)
                return applied
            return None

        bench.lose = lose
        _, first, _ = self.allocate(bench)
        _, second, _ = self.allocate(bench)

        assert lost
        assert second >= first + 1_000

    def test_strangers_and_earlier_lives_are_refused(self):
        bench = serving()

        assert self.allocate(bench, broker=9)[0] == E.BROKER_ID_NOT_REGISTERED
        assert self.allocate(bench, epoch=1)[0] == E.STALE_BROKER_EPOCH
        assert self.allocate(bench, epoch=-1)[0] == E.STALE_BROKER_EPOCH

    def test_a_block_that_cannot_be_read_is_not_guessed(self):
        bench = serving()
        bench.zk(SetData(paths.LATEST_PRODUCER_ID_BLOCK, b"{oops", ANY_VERSION))

        assert self.allocate(bench)[0] == E.UNKNOWN_SERVER_ERROR

    def test_another_broker_refuses(self):
        assert self.allocate(out_of_office())[0] == E.NOT_CONTROLLER

    def ask_one_who_takes_office(self) -> ControllerBench:
        bench = out_of_office()
        bench.zk_is_held = True
        bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
        while not bench.node.controller.is_active:
            bench.answer(bench.held.pop(0))
            bench.settle()
        assert not bench.node.controller.is_serving
        epoch = bench.node.identity.broker_epoch
        bench.send(bench.connect(), AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch), 0)
        assert bench.written == []
        return bench

    def answered(self, bench: ControllerBench) -> list[int]:
        frames = [b"".join(write.parts)[4:] for write in bench.written]
        return [decode_response(AllocateProducerIdsResponse, 0, frame)[1].error_code for frame in frames]

    def test_a_controller_that_still_reads_lets_them_wait(self):
        bench = self.ask_one_who_takes_office()

        bench.zk_is_held = False
        for held in bench.held:
            bench.answer(held)
        bench.settle()

        assert self.answered(bench) == [0]

    def test_those_who_wait_hear_when_it_ends_first(self):
        bench = self.ask_one_who_takes_office()

        bench.node.on_zk_session(SessionExpired(bench.session))
        bench.settle()

        assert self.answered(bench) == [E.NOT_CONTROLLER]


def test_controlled_shutdown_answers_what_is_still_led():
    bench = serving(2, topics={"orders": ((1, 2),), "alone": ((1, 2),)})
    bench.set_state("alone", 0, leader=1, isr=(1,))
    bench.zk(
        Create(
            paths.ISR_CHANGE_PREFIX,
            b'{"version":1,"partitions":[{"topic":"alone","partition":0}]}',
            sequential=True,
        )
    )
    epoch = bench.node.identity.broker_epoch

    answer = bench.ask(ControlledShutdownRequest(broker_id=1, broker_epoch=epoch), 3)

    assert answer.error_code == 0
    assert [(row.topic_name, row.partition_index) for row in answer.remaining_partitions] == [("alone", 0)]
    assert bench.led("orders", 0) == (2, 1, (2,))


def test_controlled_shutdown_is_refused_by_another_broker():
    answer = out_of_office().ask(ControlledShutdownRequest(broker_id=1, broker_epoch=-1), 3)

    assert answer.error_code == E.STALE_CONTROLLER_EPOCH


def test_alter_partition_is_refused_by_another_broker():
    assert out_of_office().ask(AlterPartitionRequest(broker_id=1), 3).error_code == E.NOT_CONTROLLER


def test_no_feature_can_be_finalized():
    update = FeatureUpdateKey(feature="group.version", max_version_level=1)

    answer = serving().ask(UpdateFeaturesRequest(feature_updates=[update]), 1)

    assert [(row.feature, row.error_code) for row in answer.results] == [("group.version", E.INVALID_REQUEST)]
    assert out_of_office().ask(UpdateFeaturesRequest(), 1).error_code == E.NOT_CONTROLLER
