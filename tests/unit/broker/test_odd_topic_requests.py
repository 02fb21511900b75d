"""Requests to the controller that are odd, or ask about what is odd: they are answered as Kafka does."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode as E
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.zookeeper import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, SetData
from support.controller_bench import ControllerBench, out_of_office, serving

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
