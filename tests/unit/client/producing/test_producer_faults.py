"""The producer's core when things fail: retries, order, exactly once, and errors that say what happened."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.errors import (
    BrokerError,
    BufferFull,
    ClientClosed,
    ConnectionLost,
    DeliveryFailed,
    RecordTooLarge,
    TimedOut,
)
from ottla.client.producing.batches import Delivery
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.apis.produce import (
    ProduceRequest,
)
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE, FakeCluster
from support.client.producing import (
    ORDERS_0,
    ORDERS_1,
    a_cluster,
    a_producer,
    a_record,
    flushed,
    refusal,
    values_in,
)


def test_a_leader_that_moved_is_found_and_the_record_delivered_once() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    flushed_first = producer.send("orders", a_record(b"a"))
    flushed(cluster, producer)
    cluster.move_leader(ORDERS_0, 2)

    delivery = producer.send("orders", a_record(b"b"))
    flushed(cluster, producer)

    assert (flushed_first.offset, delivery.offset, delivery.error) == (0, 1, None)
    assert [broker for broker, _, _ in cluster.requests(ApiKey.PRODUCE)] == [1, 1, 2]


def test_a_leader_named_in_the_answer_is_asked_at_once() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    producer.send("orders", a_record(b"a"))
    flushed(cluster, producer)
    cluster.move_leader(ORDERS_0, 2)
    hint = LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=hint))
    refreshes = len(cluster.requests(ApiKey.METADATA))

    delivery = producer.send("orders", a_record(b"b"))
    cluster.settle()

    assert delivery.is_done
    assert len(cluster.requests(ApiKey.METADATA)) == refreshes


def test_a_lost_answer_is_no_second_copy() -> None:
    """The broker appended and died before it answered: the retry has the same sequence."""
    cluster = a_cluster()
    producer = a_producer(cluster)

    def append_and_hang_up(request: ProduceRequest) -> str:
        cluster.produce(1, request)
        return HANG_UP

    cluster.script(ApiKey.PRODUCE, append_and_hang_up)
    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert delivery.offset == 0
    assert values_in(cluster) == [b"value"]


def test_a_batch_that_fails_with_others_behind_it_keeps_its_place() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, batch_size=100)
    producer.send("orders", a_record(b"warm up"))
    flushed(cluster, producer)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.NOT_ENOUGH_REPLICAS))

    deliveries = [producer.send("orders", a_record(b"%d" % n * 60)) for n in range(4)]
    flushed(cluster, producer)

    assert [delivery.error for delivery in deliveries] == [None] * 4
    assert values_in(cluster)[1:] == [b"%d" % n * 60 for n in range(4)]
    assert len(cluster.requests(ApiKey.INIT_PRODUCER_ID)) == 1


def test_the_first_batch_goes_alone_for_a_second_could_be_taken_in_its_place() -> None:
    cluster = a_cluster([1, 1])
    producer = a_producer(cluster, batch_size=100)
    producer.send("orders", a_record(), partition=1)
    flushed(cluster, producer)
    before = len(cluster.requests(ApiKey.PRODUCE))
    cluster.is_holding = True

    deliveries = [producer.send("orders", a_record(b"%d" % n * 60), partition=0) for n in range(4)]
    cluster.settle()

    assert len(cluster.requests(ApiKey.PRODUCE)) == before + 1
    cluster.release()
    flushed(cluster, producer)
    assert [delivery.error for delivery in deliveries] == [None] * 4
    assert values_in(cluster) == [b"%d" % n * 60 for n in range(4)]


def test_several_batches_of_a_partition_are_on_their_way_together() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, batch_size=100)
    producer.send("orders", a_record())
    flushed(cluster, producer)
    before = len(cluster.requests(ApiKey.PRODUCE))
    cluster.is_holding = True

    for n in range(9):
        producer.send("orders", a_record(b"%d" % n * 60))
    cluster.settle()

    assert len(cluster.requests(ApiKey.PRODUCE)) == before + 5
    cluster.release()
    flushed(cluster, producer)
    assert values_in(cluster)[1:] == [b"%d" % n * 60 for n in range(9)]


def test_without_idempotence_a_partition_has_one_batch_on_its_way() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, batch_size=100, acks=1)
    producer.send("orders", a_record())
    flushed(cluster, producer)
    before = len(cluster.requests(ApiKey.PRODUCE))
    cluster.is_holding = True

    for n in range(3):
        producer.send("orders", a_record(b"%d" % n * 60))
    cluster.settle()

    assert len(cluster.requests(ApiKey.PRODUCE)) == before + 1
    cluster.release()


def test_an_error_that_stays_names_partition_cause_and_attempts() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, retries=2)
    cluster.script(ApiKey.PRODUCE, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 3)

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)
    assert delivery.error.partition == ORDERS_0
    assert delivery.error.attempts == 3
    assert str(delivery.error) == "orders-0: not delivered after 3 attempts; last cause: NOT_ENOUGH_REPLICAS"


def test_a_final_error_is_not_tried_again() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)
    assert delivery.error.attempts == 1


def test_delivery_timeout_ends_a_retry_that_would_never_end() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, delivery_timeout_ms=3_000)
    cluster.script(ApiKey.PRODUCE, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 1000)

    delivery = producer.send("orders", a_record())
    started_ms = cluster.now_ms
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)
    assert isinstance(delivery.error.cause, BrokerError)
    assert delivery.error.attempts > 3
    assert 3_000 <= cluster.now_ms - started_ms < 4_500


def test_a_partition_without_a_leader_holds_its_records_until_it_has_one_or_time_is_over() -> None:
    cluster = a_cluster([-1])
    producer = a_producer(cluster, delivery_timeout_ms=3_000)
    first = producer.send("orders", a_record(b"first"))
    cluster.pass_time(2_000)
    cluster.move_leader(ORDERS_0, 2)
    flushed(cluster, producer)
    assert first.error is None

    cluster.move_leader(ORDERS_0, -1)
    second = producer.send("orders", a_record(b"second"))
    flushed(cluster, producer)

    assert isinstance(second.error, DeliveryFailed)
    assert "NOT_LEADER" in str(second.error) or "LEADER_NOT_AVAILABLE" in str(second.error)


def test_brokers_that_cannot_be_reached_are_the_named_cause() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, delivery_timeout_ms=3_000)
    producer.send("orders", a_record())
    flushed(cluster, producer)
    cluster.kill(1)
    cluster.kill(2)

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)
    assert isinstance(delivery.error.cause, ConnectionLost)


def test_a_topic_that_does_not_appear_fails_after_max_block() -> None:
    cluster = FakeCluster()
    producer = a_producer(cluster, max_block_ms=2_000)

    delivery = producer.send("nowhere", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, TimedOut)
    assert "nowhere" in str(delivery.error)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(delivery.error)
    assert producer.buffered_bytes == 0


def test_a_topic_that_may_not_be_is_refused_at_once() -> None:
    cluster = FakeCluster()
    producer = a_producer(cluster)
    row = MetadataResponseTopic(name="a/b", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
    cluster.script(ApiKey.METADATA, MetadataResponse(topics=[row]))

    delivery = producer.send("a/b", a_record())
    cluster.settle()

    assert isinstance(delivery.error, BrokerError)


def test_a_batch_that_is_too_large_for_the_broker_is_split_until_it_fits() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)

    def only_small(request: ProduceRequest) -> Any:
        records = request.topic_data[0].partition_data[0].records
        assert records is not None
        if read_header(records).record_count > 2:
            cluster.script(ApiKey.PRODUCE, only_small)
            return refusal(ErrorCode.MESSAGE_TOO_LARGE)(request)
        cluster.script(ApiKey.PRODUCE, only_small)
        return cluster.produce(1, request)

    cluster.script(ApiKey.PRODUCE, only_small)
    deliveries = [producer.send("orders", a_record(b"%d" % n)) for n in range(7)]
    flushed(cluster, producer)

    assert [delivery.offset for delivery in deliveries] == list(range(7))
    assert values_in(cluster) == [b"%d" % n for n in range(7)]


def test_one_record_that_is_too_large_for_the_broker_fails() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.MESSAGE_TOO_LARGE))

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)


def test_a_record_beyond_max_request_size_is_refused_before_it_is_taken() -> None:
    producer = a_producer(a_cluster(), max_request_size=1_000)

    with pytest.raises(RecordTooLarge):
        producer.send("orders", a_record(b"x" * 1_000))

    assert producer.buffered_bytes == 0


def test_a_full_buffer_refuses_until_brokers_have_taken_something() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, buffer_memory=1_000)
    producer.send("orders", a_record(b"x" * 900))
    with pytest.raises(BufferFull):
        producer.send("orders", a_record(b"x" * 900))

    flushed(cluster, producer)

    producer.send("orders", a_record(b"x" * 900))


def test_a_coordinator_that_still_loads_is_asked_again_for_the_producer_id() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    loading = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    cluster.script(ApiKey.INIT_PRODUCER_ID, loading, loading)

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert delivery.error is None


def test_a_producer_that_may_not_be_idempotent_hears_so() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    cluster.script(ApiKey.INIT_PRODUCER_ID, refused)

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert isinstance(delivery.error, DeliveryFailed)
    assert "CLUSTER_AUTHORIZATION_FAILED" in str(delivery.error)
    allowed = producer.send("orders", a_record())
    flushed(cluster, producer)
    assert allowed.error is None, "it is asked for again"


def test_closing_fails_what_was_not_sent() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, linger_ms=1_000)
    placed = producer.send("orders", a_record())
    cluster.settle()
    unplaced = producer.send("unknown", a_record())

    producer.close()

    assert isinstance(placed.error, ClientClosed)
    assert isinstance(unplaced.error, ClientClosed)
    assert producer.buffered_bytes == 0


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans())
def test_whatever_happens_every_delivered_record_is_there_once_and_in_order(
    seed: int, is_patient: bool
) -> None:
    rng = Random(seed)
    cluster = FakeCluster(brokers=3, seed=seed)
    cluster.topic("orders", [1, 2])
    timeout_ms = 10_000_000 if is_patient else 20_000
    producer = a_producer(cluster, batch_size=rng.choice((80, 300)), delivery_timeout_ms=timeout_ms)
    sent: dict[TopicPartition, list[tuple[bytes, Delivery]]] = {ORDERS_0: [], ORDERS_1: []}

    def something_goes_wrong(request: ProduceRequest) -> Any:
        leader = {n: cluster.logs[TopicPartition("orders", n)].leader for n in (0, 1)}
        broker = leader[request.topic_data[0].partition_data[0].index]
        match rng.randrange(6 if is_patient else 7):
            case 0:
                return HANG_UP
            case 1:
                cluster.produce(broker, request)
                return HANG_UP
            case 2:
                return SILENCE
            case 3:
                return refusal(ErrorCode.NOT_ENOUGH_REPLICAS)(request)
            case 4:
                return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)(request)
            case 6:
                return refusal(ErrorCode.INVALID_TIMESTAMP)(request)
            case _:
                cluster.produce(broker, request)
                return refusal(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)(request)

    for n in range(60):
        partition = rng.randrange(2)
        value = b"%d" % n
        delivery = producer.send("orders", a_record(value), partition=partition)
        sent[TopicPartition("orders", partition)].append((value, delivery))
        if rng.random() < 0.25:
            cluster.script(ApiKey.PRODUCE, something_goes_wrong)
        if rng.random() < 0.1:
            cluster.move_leader(TopicPartition("orders", rng.randrange(2)), rng.randint(1, 3))
        if rng.random() < 0.5:
            cluster.settle()
    cluster.run(producer.flush(), ms_max=10_000_000)

    for name, records in sent.items():
        logged = values_in(cluster, name)
        delivered = [value for value, delivery in records if delivery.error is None]
        assert len(delivered) == len(records) or not is_patient
        assert [value for value in logged if value in delivered] == delivered
        assert len(set(logged)) == len(logged)
        assert all(logged[d.offset] == value for value, d in records if d.offset >= 0)
    assert producer.buffered_bytes == 0


def test_whoever_asks_late_is_told_of_a_delivery_at_once() -> None:
    told: list[int] = []
    early, late = Delivery(), Delivery()

    early.when_done(lambda delivery: told.append(delivery.offset))
    early.succeed(TopicPartition("orders", 0), 7, 0)
    late.succeed(TopicPartition("orders", 0), 8, 0)
    late.when_done(lambda delivery: told.append(delivery.offset))

    assert told == [7, 8]
