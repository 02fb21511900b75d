"""The follower's half of a fetch session."""

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition
from ottla.replication.fetch_plan import Answered, FetchPlan, fetcher_of
from ottla.replication.follower import FetchFrom
from unit.replication.builders import TOPIC_ID

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
REBORN = TopicId(bytes(reversed(range(16))))


def at(offset: int, topic_id: TopicId = TOPIC_ID) -> FetchFrom:
    return FetchFrom(topic_id, leader_epoch=1, fetch_offset=offset, last_fetched_epoch=1, log_start_offset=0)


def a_plan_in_session(*partitions: TopicPartition, session_id: int = 7) -> FetchPlan:
    plan = FetchPlan()
    for partition in partitions:
        plan.want(partition, at(0))
    plan.next_request()
    assert plan.answered(ErrorCode.NONE, session_id, partitions) is Answered.ACCEPTED
    return plan


def test_the_first_request_is_full() -> None:
    plan = FetchPlan()
    plan.want(ORDERS_0, at(3))
    plan.want(ORDERS_1, at(4))

    request = plan.next_request()

    assert request.is_full
    assert request.session_id == 0
    assert request.ask == {ORDERS_0: at(3), ORDERS_1: at(4)}


def test_then_only_what_changed_is_told() -> None:
    plan = a_plan_in_session(ORDERS_0, ORDERS_1)
    plan.want(ORDERS_0, at(5))
    plan.want(ORDERS_1, at(0))

    request = plan.next_request()

    assert (request.session_id, request.session_epoch) == (7, 1)
    assert request.ask == {ORDERS_0: at(5)}
    assert request.forget == []


def test_session_epochs_count_up() -> None:
    plan = a_plan_in_session(ORDERS_0)
    for expected in (1, 2, 3):
        assert plan.next_request().session_epoch == expected
        plan.answered(ErrorCode.NONE, 7, ())


def test_a_dropped_partition_is_forgotten_once() -> None:
    plan = a_plan_in_session(ORDERS_0, ORDERS_1)
    plan.drop(ORDERS_1)

    assert plan.next_request().forget == [(ORDERS_1, TOPIC_ID)]
    plan.answered(ErrorCode.NONE, 7, ())
    assert plan.next_request().forget == []


def test_a_partition_dropped_and_wanted_again_stays() -> None:
    plan = a_plan_in_session(ORDERS_0)
    plan.drop(ORDERS_0)
    plan.want(ORDERS_0, at(0))

    request = plan.next_request()

    assert (request.ask, request.forget) == ({}, [])


def test_a_partition_that_the_leader_has_forgotten_is_told_anew_though_it_stands_where_it_stood() -> None:
    plan = a_plan_in_session(ORDERS_0, ORDERS_1)
    plan.drop(ORDERS_0)
    plan.next_request()
    plan.answered(ErrorCode.NONE, 7, ())

    plan.want(ORDERS_0, at(0))

    assert plan.next_request().ask == {ORDERS_0: at(0)}


def test_a_topic_made_anew_is_forgotten_under_its_old_id() -> None:
    plan = a_plan_in_session(ORDERS_0)
    plan.drop(ORDERS_0)
    plan.want(ORDERS_0, at(0, REBORN))

    request = plan.next_request()

    assert request.ask == {ORDERS_0: at(0, REBORN)}
    assert request.forget == [(ORDERS_0, TOPIC_ID)]
    assert plan.asked == {ORDERS_0: at(0, REBORN)}


def test_a_new_leader_epoch_is_told_although_the_offset_is_the_same() -> None:
    """KAFKA-9338: a session that kept the old epoch would be fenced for ever."""
    plan = a_plan_in_session(ORDERS_0)
    plan.want(ORDERS_0, at(0)._replace(leader_epoch=2))

    assert list(plan.next_request().ask) == [ORDERS_0]


def test_a_lost_session_is_begun_anew() -> None:
    plan = a_plan_in_session(ORDERS_0)
    plan.next_request()

    assert plan.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, ()) is Answered.REFUSED
    request = plan.next_request()

    assert (request.session_id, request.session_epoch) == (0, 0)
    assert list(request.ask) == [ORDERS_0]


def test_after_a_wrong_epoch_the_full_request_names_the_session_it_replaces() -> None:
    plan = a_plan_in_session(ORDERS_0)
    plan.next_request()
    plan.answered(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, ())

    request = plan.next_request()

    assert (request.session_id, request.session_epoch) == (7, 0)


def test_a_leader_that_grants_no_session_is_asked_in_full_each_time() -> None:
    plan = a_plan_in_session(ORDERS_0, session_id=0)

    assert plan.next_request().is_full


def test_a_full_answer_that_leaves_a_partition_out_does_not_count() -> None:
    plan = FetchPlan()
    plan.want(ORDERS_0, at(0))
    plan.want(ORDERS_1, at(0))
    plan.next_request()

    assert plan.answered(ErrorCode.NONE, 7, (ORDERS_0,)) is Answered.INCOMPLETE
    assert plan.next_request().is_full


def test_after_a_lost_connection_everything_is_told_again() -> None:
    plan = a_plan_in_session(ORDERS_0, ORDERS_1)
    plan.want(ORDERS_0, at(5))
    plan.next_request()

    plan.connection_lost()
    request = plan.next_request()

    assert request.is_full
    assert request.ask == {ORDERS_0: at(5), ORDERS_1: at(0)}


def test_partitions_of_a_topic_spread_over_the_fetchers() -> None:
    assert {fetcher_of(TopicPartition("orders", p), 4) for p in range(4)} == {0, 1, 2, 3}
