"""Requests to the controller that are odd, or ask about what is odd: they are answered as Kafka does."""

from typing import Any

import pytest

from ottla.broker.clients.request import Request
from ottla.model.errors import ErrorCode as E
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, SetData
from support.bench.controller_bench import ControllerBench, out_of_office, serving

KRAFTS_LOG = "__cluster_metadata"


def delete(bench: ControllerBench, *topics: DeleteTopicState) -> list[tuple[str | None, int]]:
    answer = bench.ask(DeleteTopicsRequest(topics=list(topics), timeout_ms=1_000), 6)
    return [(row.name, row.error_code) for row in answer.responses]


class TestKraftsLog:
    def test_is_not_created(self):
        bench = serving()
        topics = [CreatableTopic(KRAFTS_LOG, 1, 1), CreatableTopic("orders", 1, 1)]

        answer = bench.ask(CreateTopicsRequest(topics=topics), 7)

        assert [(row.error_code, row.error_message) for row in answer.topics] == [
            (E.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
            (0, None),
        ]
        assert bench.children(paths.TOPICS) == ["orders"]

    def test_is_not_created_for_a_client_that_asks_about_it(self):
        bench = serving()

        answer = bench.ask(MetadataRequest(topics=[MetadataRequestTopic(name=KRAFTS_LOG)]), 12)

        assert [row.error_code for row in answer.topics] == [E.UNKNOWN_TOPIC_OR_PARTITION]
        assert bench.children(paths.TOPICS) == []


class TestDeleteTopics:
    def test_one_row_with_name_and_id_refuses_all(self):
        bench = serving(topics={"orders": ((1,),), "bills": ((1,),)})
        topic_id = bench.topic("bills").topic_id or b""
        both = DeleteTopicState(name="bills", topic_id=topic_id)

        assert delete(bench, DeleteTopicState(name="orders"), both) == [
            ("orders", E.INVALID_REQUEST),
            ("bills", E.INVALID_REQUEST),
        ]
        assert bench.children(paths.TOPICS) == ["bills", "orders"]

    def test_a_topic_named_twice_is_deleted(self):
        bench = serving(topics={"orders": ((1,),)})

        twice = [DeleteTopicState(name="orders"), DeleteTopicState(name="orders")]

        assert delete(bench, *twice) == [("orders", 0), ("orders", 0)]
        assert bench.children(paths.TOPICS) == []

    def test_a_topic_on_its_way_out_is_not_known_by_its_id_either(self):
        bench = serving(2, topics={"orders": ((1, 2),)})
        topic_id = bench.topic("orders").topic_id or b""
        bench.delete_errors.add("two")
        bench.zk(Create(paths.delete_topic("orders")))
        assert "orders" not in bench.node.metadata.topics

        assert delete(bench, DeleteTopicState(topic_id=topic_id)) == [
            ("orders", E.UNKNOWN_TOPIC_OR_PARTITION)
        ]

    def test_all_rows_of_a_topic_that_is_still_there_say_so(self):
        bench = serving(topics={"orders": ((1,),)})
        bench.silent.add("one")
        rows = [DeleteTopicState(name="orders"), DeleteTopicState(name="orders")]

        answer = bench.ask(DeleteTopicsRequest(topics=rows, timeout_ms=0), 6)

        assert [row.error_code for row in answer.responses] == [E.REQUEST_TIMED_OUT, E.REQUEST_TIMED_OUT]


class TestCreatePartitions:
    def grow(self, bench: ControllerBench, count: int, assignments: list[Any] | None = None) -> list[int]:
        topic = CreatePartitionsTopic(name="orders", count=count, assignments=assignments)
        answer = bench.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=1_000), 3)
        return [row.error_code for row in answer.results]

    def test_an_empty_assignment_is_not_none(self):
        bench = serving(topics={"orders": ((1,),)})

        assert self.grow(bench, 2, []) == [E.INVALID_REPLICA_ASSIGNMENT]
        assert len(bench.topic("orders").partitions) == 1

    def test_a_topic_without_partitions_does_not_exist(self):
        assert self.grow(serving(topics={"orders": ()}), 2) == [E.UNKNOWN_TOPIC_OR_PARTITION]

    @pytest.mark.parametrize("partitions", [b'{"1":[1]}', b'{"0":[1],"2":[1]}', b'{"0":[]}'])
    def test_partitions_that_are_missing_are_not_made_by_overwriting_others(self, partitions: bytes):
        bench = serving(topics={"orders": ()})
        odd = b'{"version":2,"partitions":%s}' % partitions
        bench.deliver = lambda fired: None  # type: ignore[method-assign]  # the watch fires late
        bench.zk(SetData(paths.topic("orders"), odd, ANY_VERSION))

        assert self.grow(bench, 5) == [E.UNKNOWN_SERVER_ERROR]
        assert bench.data(paths.topic("orders")) == odd


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        (None, E.NO_REASSIGNMENT_IN_PROGRESS),
        ((), E.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), E.INVALID_REPLICA_ASSIGNMENT),
        ((-1,), E.INVALID_REPLICA_ASSIGNMENT),
        ((9,), E.INVALID_REPLICA_ASSIGNMENT),
        ((1,), E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
@pytest.mark.parametrize("is_dying", [False, True])
def test_a_reassignment_of_what_is_not_there_is_judged_like_another_first(
    replicas: tuple[int, ...] | None, error: E, is_dying: bool
):
    bench = serving(2, topics={"orders": ((1, 2),)} if is_dying else {})
    bench.delete_errors.add("two")
    bench.zk(Create(paths.delete_topic("orders")))
    row = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="orders", partitions=[row])

    answer = bench.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 0)

    assert [row.error_code for row in answer.responses[0].partitions] == [error]


@pytest.mark.parametrize("bench", [serving, out_of_office])
def test_an_election_of_no_known_type_fails_in_every_row(bench: Any):
    asked = [TopicPartitions(topic="orders", partitions=(0, 7))]

    answer = bench().ask(ElectLeadersRequest(election_type=2, topic_partitions=asked), 2)
    of_all = bench().ask(ElectLeadersRequest(election_type=-1, topic_partitions=None), 2)

    [topic] = answer.replica_election_results
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert [(row.partition_id, row.error_code, row.error_message) for row in topic.partition_result] == [
        (0, E.UNKNOWN_SERVER_ERROR, None),
        (7, E.UNKNOWN_SERVER_ERROR, None),
    ]
    assert (of_all.error_code, of_all.replica_election_results) == (E.UNKNOWN_SERVER_ERROR, [])


@pytest.mark.parametrize(("epoch", "error"), [(-1, E.BROKER_NOT_AVAILABLE), (5, E.UNKNOWN_SERVER_ERROR)])
def test_a_broker_that_nobody_knows_cannot_leave(epoch: int, error: E):
    answer = serving().ask(ControlledShutdownRequest(broker_id=9, broker_epoch=epoch), 3)

    assert answer.error_code == error


class TestTheLongestName:
    """What is said of it for people would not fit into an answer: it is cut, and the answer comes."""

    NAME = "n" * 32_767

    def test_creates_no_topic(self):
        [row] = serving().ask(CreateTopicsRequest(topics=[CreatableTopic(self.NAME, 1, 1)]), 7).topics

        assert (row.name, row.error_code) == (self.NAME, E.INVALID_TOPIC_EXCEPTION)
        assert row.error_message.startswith("Topic name is invalid: the length of 'nnn")

    def test_gets_no_partitions(self):
        topics = [CreatePartitionsTopic(self.NAME, 3, None)]

        [row] = serving().ask(CreatePartitionsRequest(topics=topics), 3).results

        assert (row.name, row.error_code) == (self.NAME, E.UNKNOWN_TOPIC_OR_PARTITION)


class TestNamedTwice:
    def test_a_partition_is_moved_where_it_was_said_last(self):
        bench = serving(topics={"orders": ((1,),)})
        rows = [ReassignablePartition(0, (9,)), ReassignablePartition(0, (1,))]

        answer = bench.ask(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("orders", [r]) for r in rows]), 0
        )

        assert [(topic.name, [row.error_code for row in topic.partitions]) for topic in answer.responses] == [
            ("orders", [E.NONE])
        ]

    def test_a_partition_of_a_new_topic_lies_where_it_was_said_last(self):
        bench = serving(2)
        rows = [CreatableReplicaAssignment(0, (2,)), CreatableReplicaAssignment(0, (1,))]

        topic = CreatableTopic("orders", -1, -1, assignments=rows)
        answer = bench.ask(CreateTopicsRequest(topics=[topic]), 7)

        assert [(row.error_code, row.num_partitions) for row in answer.topics] == [(E.NONE, 1)]
        assert bench.topic("orders").partitions[0].replicas == (1,)

    def test_an_id_is_answered_once_and_names_beside_it_not_at_all(self):
        bench = serving(topics={"orders": ((1,),), "bills": ((1,),)})
        known, unknown = bench.topic("orders").topic_id, b"u" * 16
        asked = [MetadataRequestTopic(topic_id=each, name=None) for each in (unknown, known, unknown, known)]

        answer = bench.ask(MetadataRequest(topics=[*asked, MetadataRequestTopic(name="bills")]), 12)

        assert [(row.name, row.error_code) for row in answer.topics] == [
            (None, E.UNKNOWN_TOPIC_ID),
            ("orders", E.NONE),
        ]


class TestMoreReplicasThanAnAnswerCanTell:
    """The reason would name them all: no request is left without its answer, and no controller resigns."""

    MANY = tuple(range(10, 10_010))

    def test_are_no_place_to_move_to(self):
        bench = serving(topics={"orders": ((1,), (1,))})
        rows = [ReassignablePartition(0, self.MANY), ReassignablePartition(1, (7,) * 20_000)]

        answer = bench.ask(AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("orders", rows)]), 0)

        codes = [row.error_code for row in answer.responses[0].partitions]
        assert codes == [E.INVALID_REPLICA_ASSIGNMENT, E.INVALID_REPLICA_ASSIGNMENT]
        assert bench.node.controller.is_active

    def test_are_no_place_for_a_new_topic(self):
        by_hand = [CreatableReplicaAssignment(0, (7,) * 20_000)]
        topic = CreatableTopic("huge", -1, -1, assignments=by_hand)

        [row] = serving().ask(CreateTopicsRequest(topics=[topic]), 7).topics

        assert row.error_code == E.INVALID_REPLICA_ASSIGNMENT

    def test_are_more_than_a_replication_factor_can_say(self):
        by_hand = [CreatableReplicaAssignment(0, tuple(range(1, 40_000)))]
        topic = CreatableTopic("huge", -1, -1, assignments=by_hand)

        [row] = serving().ask(CreateTopicsRequest(topics=[topic], validate_only=True), 7).topics

        assert (row.error_code, row.replication_factor) == (E.NONE, 2**15 - 1)

    def test_nor_does_an_answer_that_fails_end_a_term(self, monkeypatch: pytest.MonkeyPatch):
        bench = serving(topics={"orders": ((1,),)})
        connection = bench.connect()
        reply = Request.reply

        def fail(request: Request, message: Any) -> None:
            if request.connection.id == connection:
                raise ValueError("this answer cannot be encoded")
            reply(request, message)

        monkeypatch.setattr(Request, "reply", fail)
        rows = [ReassignablePartition(0, (1,))]
        bench.send(
            connection, AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("orders", rows)]), 0
        )

        assert [each.reason for each in bench.closed] == ["internal error"]
        assert bench.node.controller.is_active
