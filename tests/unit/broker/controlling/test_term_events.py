"""The controller's host on the bench: what brokers, clients and bad znodes bring it."""

import pytest

from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.wire.apis.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.wire.apis.leader_and_isr import LeaderAndIsrRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from ottla.znodes import paths
from ottla.znodes.codec import encode_partitions, encode_reassignment
from ottla.znodes.codec_config import encode_log_dir_event
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    SetData,
)
from support.bench.controller_bench import ControllerBench, in_office
from support.bench.node_bench import a_config


class TestBrokers:
    def test_a_silent_broker_hears_everything_in_order_once_it_listens(self):
        bench = in_office(2)
        bench.silent.add("two")
        bench.create_topic("orders", (1, 2))
        bench.create_topic("payments", (2, 1))
        bench.advance(500)
        assert [host for host, _ in bench.told if host == "two"] == []

        bench.silent.clear()
        bench.advance(5_000)

        heard = [
            (type(request).__name__, [topic.topic_name for topic in request.topic_states])
            for host, request in bench.told
            if host == "two"
        ]
        assert heard == [
            ("LeaderAndIsrRequest", ["orders"]),
            ("UpdateMetadataRequest", ["orders"]),
            ("LeaderAndIsrRequest", ["payments"]),
            ("UpdateMetadataRequest", ["payments"]),
        ]

    def test_a_mistake_about_one_answer_does_not_hold_up_what_is_queued_behind_it(self):
        bench = in_office(2)
        term = bench.node.controller.term
        assert term is not None
        heard: list[str] = []

        def fail(answer: object) -> None:
            raise KeyError("a mistake")

        bench.zk_is_held = True
        term._channels.send(BrokerId(2), UpdateMetadataRequest(), 8, fail)
        term._channels.send(BrokerId(2), UpdateMetadataRequest(), 8, lambda answer: heard.append("two"))
        with pytest.raises(KeyError):
            bench.settle()
        bench.settle()

        assert heard == ["two"]

    def test_what_was_queued_for_a_dead_broker_is_dropped(self):
        bench = in_office(2)
        bench.silent.add("two")
        bench.create_topic("orders", (1, 2))
        bench.unregister(2)
        bench.silent.clear()

        bench.advance(5_000)

        assert [host for host, _ in bench.told if host == "two"] == []

    def test_a_returning_broker_hears_all_partitions_before_its_own(self):
        bench = in_office(2, topics={"orders": ((1, 2),), "payments": ((1,),)})
        bench.unregister(2)
        bench.told.clear()

        bench.register(2)

        heard = [request for host, request in bench.told if host == "two"]
        assert isinstance(heard[0], UpdateMetadataRequest)
        assert [topic.topic_name for topic in heard[0].topic_states] == ["orders", "payments"]
        assert [broker.id for broker in heard[0].live_brokers] == [1, 2]
        assert isinstance(heard[1], LeaderAndIsrRequest)
        assert [topic.topic_name for topic in heard[1].topic_states] == ["orders"]

    def test_a_failed_log_directory_moves_the_leaders_on_it(self):
        bench = in_office(2, topics={"orders": ((2, 1), (2, 1))})
        bench.storage_errors.add(("two", "orders", 0))

        bench.zk(Create(paths.LOG_DIR_EVENT_PREFIX, encode_log_dir_event(BrokerId(2)), sequential=True))

        assert bench.led("orders", 0) == (1, 1, (1,))
        assert bench.led("orders", 1) == (2, 0, (2, 1))
        assert bench.children(paths.LOG_DIR_EVENT_NOTIFICATION) == []


class TestRequests:
    def alter(self, bench: ControllerBench, isr: tuple[int, ...], **changes: int) -> object:
        epoch = changes.get("broker_epoch", bench.node.identity.broker_epoch)
        topic_id = bench.topic("orders").topic_id or TopicId(bytes(16))
        return bench.ask(
            AlterPartitionRequest(
                broker_id=1,
                broker_epoch=epoch,
                topics=[
                    RequestTopicData(
                        topic_id=topic_id,
                        partitions=[
                            RequestPartitionData(
                                leader_epoch=0,
                                partition_epoch=changes.get("partition_epoch", 0),
                                new_isr_with_epochs=[BrokerState(broker_id=b) for b in isr],
                                leader_recovery_state=changes.get("recovery", 0),
                            )
                        ],
                    ),
                    RequestTopicData(topic_id=b"no such topic id", partitions=[RequestPartitionData()]),
                ],
            ),
            3,
        )

    def test_alter_partition_writes_the_isr_and_answers_the_new_epoch(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})

        answer = self.alter(bench, (1,))

        row = answer.topics[0].partitions[0]  # type: ignore[attr-defined]
        assert (row.error_code, row.isr, row.partition_epoch, row.leader_id) == (0, (1,), 1, 1)
        assert answer.topics[1].partitions[0].error_code == 100  # type: ignore[attr-defined]
        assert bench.led("orders", 0) == (1, 0, (1,))

    def test_a_controller_that_is_still_reading_does_not_call_a_topic_unknown(self):
        """Seed 70: a leader that heard so kept its ISR change pending for ever."""
        bench = in_office(2, topics={"orders": ((1, 2),)})
        term = bench.node.controller.term
        assert term is not None
        term.is_serving = False

        assert self.alter(bench, (1,)).error_code == 41  # type: ignore[attr-defined]

    def test_alter_partition_of_an_earlier_life_is_refused_as_a_whole(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})

        answer = self.alter(bench, (1,), broker_epoch=3)

        assert answer.error_code == 77  # type: ignore[attr-defined]
        assert answer.topics == []  # type: ignore[attr-defined]

    def test_an_unknown_recovery_state_is_refused_as_a_whole(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})

        assert self.alter(bench, (1,), recovery=9).error_code == -1  # type: ignore[attr-defined]


class TestBadInput:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"not json",
            b"[]",
            b'{"partitions":{"x":[1]}}',
            b'{"partitions":{"0":"one"}}',
            b'{"partitions":{"0":[]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAw"}',
            b'{"partitions":{"0":[1,1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAw"}',
            b'{"partitions":{"0":[1]},"topic_id":"short"}',
        ],
    )
    def test_a_topic_that_cannot_be_read_is_left_alone_and_the_others_are_served(self, content: bytes):
        bench = in_office(2)

        bench.zk(Create(paths.topic("broken"), content))
        bench.create_topic("orders", (1, 2))

        assert bench.node.controller.is_active
        assert bench.led("orders", 0) == (1, 0, (1, 2))
        assert bench.state("broken", 0) is None

    def test_a_broken_topic_that_is_mended_is_served(self):
        bench = in_office(2)
        bench.zk(Create(paths.topic("orders"), b"not json"))

        mended = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAw","partitions":{"0":[2,1]}}'
        bench.zk(SetData(paths.topic("orders"), mended, ANY_VERSION))

        assert bench.led("orders", 0) == (2, 0, (2, 1))

    def test_a_gap_among_the_partitions_does_not_matter(self):
        bench = in_office(2)
        content = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAw","partitions":{"0":[1,2],"7":[2,1]}}'

        bench.zk(Create(paths.topic("orders"), content))

        assert bench.led("orders", 7) == (2, 0, (2, 1))

    def test_a_topic_without_an_id_gets_one(self):
        bench = in_office(2)

        bench.zk(Create(paths.topic("old"), b'{"version":1,"partitions":{"0":[1,2]}}'))

        node = bench.topic("old")
        assert node.topic_id is not None
        assert bench.node.controller.topic_name(node.topic_id) == "old"

    def test_a_state_that_cannot_be_read_is_left_alone(self):
        bench = in_office(2, 3, topics={"orders": ((2, 1), (2, 1))})
        bench.zk(SetData("/brokers/topics/orders/partitions/0/state", b"{}", ANY_VERSION))

        bench.unregister(2)

        assert bench.data("/brokers/topics/orders/partitions/0/state") == b"{}"
        assert bench.led("orders", 1) == (1, 1, (1,))

    def test_a_registration_that_cannot_be_read_counts_as_none(self):
        bench = in_office()

        bench.zk(Create(paths.broker(2), b'{"version":', ephemeral=True))
        bench.zk(Create("/brokers/ids/not-a-number", b"{}", ephemeral=True))
        bench.create_topic("orders", (2, 1))

        assert bench.led("orders", 0) == (1, 0, (1,))

    @pytest.mark.parametrize("content", [b"{", b'{"partitions":[{"topic":1}]}', b""])
    def test_old_tools_znodes_that_cannot_be_read_are_removed(self, content: bytes):
        bench = in_office(2, topics={"orders": ((1, 2),)})

        bench.zk(Create(paths.REASSIGN_PARTITIONS, content))
        bench.zk(Create(paths.PREFERRED_REPLICA_ELECTION, content))

        assert not bench.has(paths.REASSIGN_PARTITIONS)
        assert not bench.has(paths.PREFERRED_REPLICA_ELECTION)

    def test_old_tools_may_write_again_once_the_first_is_done(self):
        bench = in_office(2, topics={"orders": ((1, 2),)})
        for _ in range(2):
            bench.zk(Create(paths.REASSIGN_PARTITIONS, encode_reassignment({("ghost", 0): (1,)})))  # type: ignore[dict-item]
            assert not bench.has(paths.REASSIGN_PARTITIONS)

    def test_topics_may_not_be_deleted_where_that_is_switched_off(self):
        bench = ControllerBench(a_config(delete_topic_enable="false")).start()
        bench.create_topic("orders", (1,))

        bench.zk(Create(paths.delete_topic("orders")))

        assert bench.has(paths.topic("orders"))
        assert bench.children(paths.DELETE_TOPICS) == []

    def test_a_wall_clock_that_jumps_changes_nothing(self):
        bench = in_office(2, topics={"orders": ((2, 1),)})
        bench.clock.wall_ms = lambda: -10_000_000  # type: ignore[method-assign]

        bench.unregister(2)

        assert bench.led("orders", 0) == (1, 1, (1,))


def test_unclean_election_asks_the_topic_first_and_the_broker_then():
    bench = in_office(2, topics={"strict": ((2, 1),), "loose": ((2, 1),)})
    bench.zk(
        Create("/config/topics/loose", b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}')
    )
    bench.zk(
        Create("/config/topics/strict", b'{"version":1,"config":{"unclean.leader.election.enable":"false"}}')
    )
    for topic in ("strict", "loose"):
        bench.set_state(topic, 0, leader=2, isr=(2,))

    bench.unregister(2)

    assert bench.led("loose", 0) == (1, 1, (1,))
    assert bench.led("strict", 0) == (-1, 1, (2,))


def test_leaders_return_to_their_preferred_replicas_by_themselves():
    bench = in_office(2, topics={"orders": ((2, 1),)})
    bench.unregister(2)
    bench.register(2)
    bench.set_state("orders", 0, leader=1, isr=(1, 2), epoch=1)
    bench.zk(
        Create(paths.ISR_CHANGE_PREFIX, encode_partitions([TopicPartition("orders", 0)]), sequential=True)
    )
    assert bench.children(paths.ISR_CHANGE_NOTIFICATION) == []

    bench.advance(6_000)

    assert bench.led("orders", 0) == (2, 2, (1, 2))


def test_leaders_stay_where_rebalancing_is_switched_off():
    bench = ControllerBench(a_config(auto_leader_rebalance_enable="false")).start()
    bench.register(2)
    bench.create_topic("orders", (2, 1))
    bench.unregister(2)
    bench.register(2)
    bench.set_state("orders", 0, leader=1, isr=(1, 2), epoch=1)
    bench.zk(
        Create(paths.ISR_CHANGE_PREFIX, encode_partitions([TopicPartition("orders", 0)]), sequential=True)
    )

    bench.advance(700_000)

    assert bench.led("orders", 0) == (1, 1, (1, 2))
