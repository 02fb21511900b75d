"""The controller's APIs for topics, asked of a node in office that also hears its own orders."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode as E
from ottla.model.partition_state import ReplicaAssignment
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.znodes import paths
from ottla.znodes.codec import TopicNode, encode_topic
from ottla.zookeeper.ops import ANY_VERSION, Create, SetData
from support.bench.controller_bench import ControllerBench, out_of_office, serving


def a_topic(name: str = "orders", partitions: int = 2, factor: int = 2, **more: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **more)


def by_hand(*rows: tuple[int, tuple[int, ...]]) -> list[CreatableReplicaAssignment]:
    return [CreatableReplicaAssignment(partition_index=i, broker_ids=held) for i, held in rows]


def create(bench: ControllerBench, *topics: CreatableTopic, **more: Any) -> list[tuple[int, str | None]]:
    answer = bench.ask(CreateTopicsRequest(topics=list(topics), **more), 7)
    return [(row.error_code, row.error_message) for row in answer.topics]


class TestCreateTopics:
    def test_a_created_topic_has_leaders_when_the_answer_comes(self):
        bench = serving(2)

        answer = bench.ask(CreateTopicsRequest(topics=[a_topic(partitions=3)]), 7)

        row = answer.topics[0]
        assert (row.error_code, row.num_partitions, row.replication_factor) == (0, 3, 2)
        assert row.topic_id == bench.topic("orders").topic_id
        assert all(info.leader in (1, 2) for info in bench.node.metadata.topics["orders"].partitions.values())
        assert bench.data("/config/topics/orders") == b'{"version":1,"config":{}}'
        settings = {each.name: each.value for each in row.configs}
        assert settings["min.insync.replicas"] == "1"

    def test_leaders_do_not_wait_for_the_controllers_own_watch(self):
        bench = serving(2)
        bench.deliver = lambda fired: None  # type: ignore[method-assign]  # the watch fires late

        assert create(bench, a_topic()) == [(0, None)]
        assert grow(bench, 3) == [(0, None)]

        assert [bench.led("orders", index)[0] in (1, 2) for index in range(3)] == [True] * 3

    def test_a_topic_that_was_asked_for_is_watched_like_another(self):
        bench = serving(2)
        create(bench, a_topic(partitions=-1, factor=-1, assignments=by_hand((0, (2, 1)))))
        topic = bench.topic("orders")
        grown = {0: ReplicaAssignment((2, 1)), 1: ReplicaAssignment((1, 2))}  # type: ignore[arg-type]

        bench.zk(SetData(paths.topic("orders"), encode_topic(TopicNode(topic.topic_id, grown)), ANY_VERSION))

        assert bench.led("orders", 1) == (1, 0, (1, 2))

    def test_overrides_are_kept_and_shown(self):
        bench = serving()
        topic = a_topic(factor=1, configs=[CreatableTopicConfig(name="retention.ms", value="77")])

        answer = bench.ask(CreateTopicsRequest(topics=[topic]), 7)

        shown = {each.name: (each.value, each.config_source) for each in answer.topics[0].configs}
        assert shown["retention.ms"] == ("77", 1)
        assert b'"retention.ms":"77"' in (bench.data("/config/topics/orders") or b"")

    def test_minus_one_stands_for_the_defaults(self):
        bench = serving(2, num_partitions=4, default_replication_factor=2)

        assert create(bench, a_topic(partitions=-1, factor=-1)) == [(0, None)]

        assert [len(a.replicas) for a in bench.topic("orders").partitions.values()] == [2, 2, 2, 2]

    def test_a_placement_by_hand_is_taken_as_it_is(self):
        bench = serving(2)
        topic = a_topic(partitions=-1, factor=-1, assignments=by_hand((0, (2, 1)), (1, (1, 9))))

        create(bench, topic)

        assert {i: a.replicas for i, a in bench.topic("orders").partitions.items()} == {0: (2, 1), 1: (1, 9)}

    def test_what_is_refused_is_told_and_not_written(self):
        bench = serving(2, topics={"there": ((1,),)})

        assert create(bench, a_topic("there"), a_topic(factor=3)) == [
            (E.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
            (E.INVALID_REPLICATION_FACTOR, "Replication factor: 3 larger than available brokers: 2."),
        ]
        assert bench.children(paths.TOPICS) == ["there"]

    def test_a_topic_named_twice_is_refused(self):
        refused = (E.INVALID_REQUEST, "Found multiple entries for this topic.")

        assert create(serving(2), a_topic(), a_topic("other"), a_topic()) == [refused, (0, None), refused]

    def test_validation_alone_writes_nothing_and_gives_no_id(self):
        bench = serving(2)

        [row] = bench.ask(CreateTopicsRequest(topics=[a_topic()], validate_only=True), 7).topics

        assert (row.error_code, row.num_partitions, row.topic_id) == (0, 2, bytes(16))
        assert bench.children(paths.TOPICS) == []

    def test_without_patience_the_topic_is_created_and_the_answer_says_timed_out(self):
        bench = serving(2)

        assert create(bench, a_topic(), timeout_ms=0) == [(E.REQUEST_TIMED_OUT, None)]

        assert bench.children(paths.TOPICS) == ["orders"]

    def test_a_topic_without_leaders_is_waited_for_until_time_is_up(self):
        bench = serving(2)
        topic = a_topic(partitions=-1, factor=-1, assignments=by_hand((0, (8,))))
        bench.send(bench.connect(), CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert bench.written == []

        bench.advance(5_001)

        assert len(bench.written) == 1

    def test_of_two_names_that_collide_only_the_first_is_made(self):
        bench = serving(2)

        assert create(bench, a_topic("a.b"), a_topic("plain"), a_topic("a_b")) == [
            (0, None),
            (0, None),
            (E.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topics: a.b"),
        ]
        assert bench.children(paths.TOPICS) == ["a.b", "plain"]

    @pytest.mark.parametrize("validate_only", [False, True])
    def test_a_topic_collides_with_one_that_no_metadata_name_yet(self, validate_only: bool):
        bench = serving(2)
        bench.deliver = lambda fired: None  # type: ignore[method-assign]  # the watch fires late
        bench.create_topic("a.b", (1,))

        assert create(bench, a_topic("a_b"), validate_only=validate_only) == [
            (E.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topics: a.b")
        ]

    def test_a_clients_wish_collides_as_well(self):
        bench = out_of_office()
        bench.create_topic("a.b", (1,))

        bench.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a_b")]), 12)
        wishes = [MetadataRequestTopic(name=name) for name in ("c.d", "c_d")]
        bench.zk_is_held = True
        answer = bench.ask(MetadataRequest(topics=wishes), 12)
        bench.zk_is_held = False
        for held in bench.held:
            bench.answer(held)
        bench.settle()

        assert {row.name: row.error_code for row in answer.topics} == {
            "c.d": E.LEADER_NOT_AVAILABLE,
            "c_d": E.INVALID_TOPIC_EXCEPTION,
        }
        assert bench.children(paths.TOPICS) == ["a.b", "c.d"]

    @pytest.mark.parametrize("validate_only", [False, True])
    def test_a_topic_on_its_way_out_cannot_be_made_again_yet(self, validate_only: bool):
        bench = serving(2, topics={"orders": ((1, 2),)})
        bench.delete_errors.add("two")
        bench.zk(Create(paths.delete_topic("orders")))
        assert "orders" not in bench.node.metadata.topics

        assert create(bench, a_topic(), validate_only=validate_only) == [
            (E.TOPIC_ALREADY_EXISTS, "Topic 'orders' is marked for deletion.")
        ]

    @pytest.mark.parametrize("is_node_there", [False, True])
    def test_nor_does_a_clients_wish_make_it(self, is_node_there: bool):
        """The controller is elsewhere, and about to remove what has the name."""
        bench = out_of_office()
        bench.zk(Create(paths.delete_topic("orders")))
        if is_node_there:
            bench.create_topic("orders", (2,))
        before = bench.data(paths.topic("orders"))

        answer = bench.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12)

        assert [row.error_code for row in answer.topics] == [E.LEADER_NOT_AVAILABLE]
        assert bench.data(paths.topic("orders")) == before
        assert not bench.has("/config/topics/orders")

    def test_another_broker_refuses(self):
        assert create(out_of_office(), a_topic()) == [(E.NOT_CONTROLLER, "")]


class TestDeleteTopics:
    def test_a_deleted_topic_is_gone_when_the_answer_comes(self):
        bench = serving(2, topics={"orders": ((1, 2),)})

        answer = bench.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1_000), 6)

        assert [(row.name, row.error_code, row.topic_id) for row in answer.responses] == [
            ("orders", 0, bytes(16))
        ]
        assert "orders" not in bench.node.metadata.topics
        assert bench.children(paths.TOPICS) == []

    def test_by_id(self):
        bench = serving(topics={"orders": ((1,),)})
        topic_id = bench.topic("orders").topic_id or b""

        answer = bench.ask(
            DeleteTopicsRequest(
                topics=[DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=b"sixteen bytes ok")],
                timeout_ms=1_000,
            ),
            6,
        )

        assert [(row.name, row.error_code) for row in answer.responses] == [
            ("orders", 0),
            (None, E.UNKNOWN_TOPIC_ID),
        ]

    def test_by_name_and_by_id_it_is_deleted_once(self):
        bench = serving(topics={"orders": ((1,),)})
        topic_id = bench.topic("orders").topic_id or b""

        answer = bench.ask(
            DeleteTopicsRequest(
                topics=[DeleteTopicState(name="orders"), DeleteTopicState(topic_id=topic_id)],
                timeout_ms=1_000,
            ),
            6,
        )

        assert [(row.name, row.topic_id, row.error_code) for row in answer.responses] == [
            ("orders", bytes(16), 0),
            ("orders", topic_id, 0),
        ]
        assert not bench.has(paths.topic("orders"))

    def test_unknown_topics_are_named(self):
        answer = serving().ask(DeleteTopicsRequest(topic_names=("ghost",), timeout_ms=1_000), 5)

        assert [row.error_code for row in answer.responses] == [E.UNKNOWN_TOPIC_OR_PARTITION]

    @pytest.mark.parametrize(("version", "error"), [(2, E.INVALID_REQUEST), (5, E.TOPIC_DELETION_DISABLED)])
    def test_where_deletion_is_switched_off(self, version: int, error: E):
        bench = serving(delete_topic_enable="false", topics={"orders": ((1,),)})

        answer = bench.ask(DeleteTopicsRequest(topic_names=("orders",), timeout_ms=1_000), version)

        assert [row.error_code for row in answer.responses] == [error]

    def test_another_broker_refuses(self):
        answer = out_of_office().ask(DeleteTopicsRequest(topic_names=("orders",)), 5)

        assert [row.error_code for row in answer.responses] == [E.NOT_CONTROLLER]


def grow(
    bench: ControllerBench, count: int, *hands: tuple[int, ...], topic: str = "orders", **more: Any
) -> Any:
    assignments = [CreatePartitionsAssignment(broker_ids=held) for held in hands] or None
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=assignments)
    answer = bench.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=1_000, **more), 3)
    return [(row.error_code, row.error_message) for row in answer.results]


class TestCreatePartitions:
    def test_added_partitions_have_leaders_when_the_answer_comes(self):
        bench = serving(2, topics={"orders": ((2, 1),)})

        assert grow(bench, 3) == [(0, None)]

        assert {i: a.replicas for i, a in bench.topic("orders").partitions.items()} == {
            0: (2, 1),
            1: (1, 2),
            2: (2, 1),
        }
        assert len(bench.node.metadata.topics["orders"].partitions) == 3

    def test_by_hand(self):
        bench = serving(2, topics={"orders": ((2, 1),)})

        assert grow(bench, 2, (1, 2)) == [(0, None)]

        assert bench.led("orders", 1) == (1, 0, (1, 2))

    def test_validation_alone_writes_nothing(self):
        bench = serving(2, topics={"orders": ((2, 1),)})

        assert grow(bench, 3, validate_only=True) == [(0, None)]

        assert len(bench.topic("orders").partitions) == 1

    def test_a_topic_that_is_not_there(self):
        assert grow(serving(), 2, topic="ghost") == [
            (E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'ghost' does not exist.")
        ]

    def test_not_while_the_topic_is_reassigned(self):
        bench = serving(2, 3, topics={"orders": ((1, 2),)})
        reassign(bench, {0: (3, 2)})

        [(code, _)] = grow(bench, 2)

        assert code == E.REASSIGNMENT_IN_PROGRESS

    def test_not_while_the_topic_is_deleted(self):
        bench = serving(2, topics={"orders": ((1, 2),)})
        bench.delete_errors.add("two")
        bench.zk(Create(paths.delete_topic("orders")))

        assert grow(bench, 2) == [(E.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")]

    def test_another_broker_refuses(self):
        assert grow(out_of_office(), 2) == [(E.NOT_CONTROLLER, None)]


def reassign(bench: ControllerBench, targets: dict[int, tuple[int, ...] | None]) -> Any:
    rows = [ReassignablePartition(partition_index=i, replicas=held) for i, held in targets.items()]
    return bench.ask(
        AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=rows)]), 0
    )


class TestReassignments:
    def test_taken_listed_and_cancelled(self):
        bench = serving(2, 3, topics={"orders": ((1, 2), (1, 2))})

        answer = reassign(bench, {0: (3, 2), 1: (9,)})
        listed = bench.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        cancelled = reassign(bench, {0: None, 1: None})

        assert (answer.error_code, answer.error_message) == (0, "")
        assert [row.error_code for row in answer.responses[0].partitions] == [0, E.INVALID_REPLICA_ASSIGNMENT]
        moving = listed.topics[0].partitions[0]
        assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((3, 2, 1), (3,), (1,))
        assert [row.error_code for row in cancelled.responses[0].partitions] == [
            0,
            E.NO_REASSIGNMENT_IN_PROGRESS,
        ]
        assert bench.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []

    def test_only_the_asked_ones_are_listed(self):
        bench = serving(2, 3, topics={"orders": ((1, 2), (1, 2))})
        reassign(bench, {0: (3, 2), 1: (3, 1)})

        asked = ListPartitionReassignmentsTopics(name="orders", partition_indexes=(1, 7))
        listed = bench.ask(ListPartitionReassignmentsRequest(topics=[asked]), 0)

        assert [row.partition_index for row in listed.topics[0].partitions] == [1]

    def test_another_broker_refuses(self):
        bench = out_of_office()

        assert reassign(bench, {0: (1,)}).error_code == E.NOT_CONTROLLER
        assert bench.ask(ListPartitionReassignmentsRequest(topics=None), 0).error_code == E.NOT_CONTROLLER


class TestDeposed:
    """Another controller was elected and this one has not heard of it: nothing that it writes counts."""

    def test_it_creates_no_topic(self):
        bench = serving(2)
        bench.zk(SetData(paths.CONTROLLER_EPOCH, b"9", ANY_VERSION))

        assert create(bench, a_topic()) == [(E.NOT_CONTROLLER, "Another controller was elected.")]
        assert bench.children(paths.TOPICS) == []
        assert not bench.has(paths.config_entity("topics", "orders"))

    def test_it_adds_no_partitions(self):
        bench = serving(2, topics={"orders": ((1, 2),)})
        bench.zk(SetData(paths.CONTROLLER_EPOCH, b"9", ANY_VERSION))

        assert grow(bench, 2) == [(E.NOT_CONTROLLER, "Another controller was elected.")]
        assert len(bench.topic("orders").partitions) == 1

    def test_it_deletes_no_topic(self):
        bench = serving(2, topics={"orders": ((1, 2),)})
        bench.zk(SetData(paths.CONTROLLER_EPOCH, b"9", ANY_VERSION))

        answer = bench.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1_000), 6)

        assert [row.error_code for row in answer.responses] == [E.NOT_CONTROLLER]
        assert not bench.has(paths.delete_topic("orders"))
