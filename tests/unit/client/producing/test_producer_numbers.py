"""Sequence numbers: each partition has its own, and keeps them while a batch may be in its log."""

from typing import Any

import pytest

from ottla.client.producing.batches import Batch, Delivery, PartitionQueue, size_of
from ottla.client.producing.producer import BATCHES_REMEMBERED
from ottla.model.errors import ErrorCode
from ottla.records.record import Record
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.apis.produce import ProduceRequest
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE
from support.client.producing import (
    ORDERS_0,
    a_cluster,
    a_producer,
    a_record,
    flushed,
    numbers_sent,
    refusal,
    values_in,
)


def test_after_a_failed_batch_the_next_ones_begin_anew_and_arrive() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.INVALID_TIMESTAMP))
    lost = producer.send("orders", a_record(b"lost"))
    flushed(cluster, producer)

    next_one = producer.send("orders", a_record(b"next"))
    flushed(cluster, producer)

    assert lost.error is not None
    assert next_one.error is None
    assert values_in(cluster) == [b"next"]
    assert numbers_sent(cluster) == [(101, 0, 0), (101, 1, 0)]


def test_a_batch_that_fails_changes_no_number_in_another_partition() -> None:
    """What the first partition has appended without an answer would be there twice under a new number."""
    cluster = a_cluster([1, 2])
    producer = a_producer(cluster)

    def one_is_lost_the_other_fails(request: ProduceRequest) -> Any:
        if request.topic_data[0].partition_data[0].index == 1:
            return refusal(ErrorCode.INVALID_TIMESTAMP)(request)
        cluster.produce(1, request)
        return HANG_UP

    cluster.script(ApiKey.PRODUCE, *[one_is_lost_the_other_fails] * 2)
    kept = producer.send("orders", a_record(b"kept"), partition=0)
    lost = producer.send("orders", a_record(b"lost"), partition=1)
    flushed(cluster, producer)
    producer.send("orders", a_record(b"next"), partition=1)
    flushed(cluster, producer)

    assert (kept.error, kept.offset) == (None, 0)
    assert lost.error is not None
    assert values_in(cluster) == [b"kept"]
    assert numbers_sent(cluster) == [(101, 0, 0)] * 2
    assert numbers_sent(cluster, 1) == [(101, 0, 0), (101, 1, 0)]


def test_what_may_be_in_the_log_keeps_its_number_when_a_batch_before_it_is_given_up() -> None:
    cluster = a_cluster(request_timeout_ms=2_500)
    producer = a_producer(cluster, delivery_timeout_ms=3_000)
    producer.send("orders", a_record(b"warm up"))
    flushed(cluster, producer)

    def append_in_silence(request: ProduceRequest) -> str:
        cluster.produce(1, request)
        return SILENCE

    refused = [refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 2
    cluster.script(ApiKey.PRODUCE, append_in_silence, append_in_silence, *refused)
    given_up = producer.send("orders", a_record(b"given up"))
    cluster.pass_time(2_000)
    kept = producer.send("orders", a_record(b"kept"))
    cluster.pass_time(500)
    cluster.script(ApiKey.PRODUCE, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 2)
    flushed(cluster, producer)
    later = producer.send("orders", a_record(b"later"))
    flushed(cluster, producer)

    assert given_up.error is not None
    assert (kept.error, later.error) == (None, None)
    assert values_in(cluster) == [b"warm up", b"given up", b"kept", b"later"]
    assert numbers_sent(cluster)[-1] == (101, 1, 0)


def test_batches_behind_one_that_was_refused_arrive_in_order_in_a_new_epoch() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, batch_size=100)
    producer.send("orders", a_record(b"warm up"))
    flushed(cluster, producer)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.INVALID_TIMESTAMP))

    deliveries = [producer.send("orders", a_record(b"%d" % n * 60)) for n in range(4)]
    flushed(cluster, producer)

    assert [delivery.error is None for delivery in deliveries] == [False, True, True, True]
    assert values_in(cluster)[1:] == [b"%d" % n * 60 for n in range(1, 4)]


def test_batches_behind_one_that_must_be_sent_again_keep_their_numbers() -> None:
    """They are out of order only because it is missing; what may be in the log must keep its number."""
    cluster = a_cluster()
    producer = a_producer(cluster, batch_size=100)
    producer.send("orders", a_record(b"warm up"))
    flushed(cluster, producer)
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.NOT_ENOUGH_REPLICAS))

    deliveries = [producer.send("orders", a_record(b"%d" % n * 60)) for n in range(3)]
    flushed(cluster, producer)

    assert [delivery.error for delivery in deliveries] == [None] * 3
    assert {epoch for _, epoch, _ in numbers_sent(cluster)} == {0}


def test_a_batch_that_stands_in_line_again_waits_for_those_on_their_way() -> None:
    queue = PartitionQueue(ORDERS_0)
    queue.producer = (101, 0)
    for _ in range(2):
        queue.open_batch(0, 10_000, 100).add(a_record(b"x"), Delivery(), 10_000)
    first, second = list(queue.waiting)
    for batch in (first, second):
        queue.take(batch)
        queue.number(batch)

    queue.in_flight.remove(first)
    queue.put_back([first])
    assert queue.next_ready(0, 100, 0, BATCHES_REMEMBERED) is None
    queue.in_flight.remove(second)
    queue.put_back([second])

    assert queue.next_ready(0, 100, 0, BATCHES_REMEMBERED) is first


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    cluster.script(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=7, producer_epoch=2**15 - 1))
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert delivery.error is None
    assert numbers_sent(cluster) == [(7, 2**15 - 1, 0), (101, 0, 0)]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
def test_a_broker_that_lost_track_of_the_producer_gets_the_batch_in_a_new_epoch(code: int) -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    cluster.script(ApiKey.PRODUCE, refusal(code))

    delivery = producer.send("orders", a_record())
    flushed(cluster, producer)

    assert delivery.error is None
    assert numbers_sent(cluster) == [(101, 0, 0), (101, 1, 0)]
    assert len(cluster.requests(ApiKey.INIT_PRODUCER_ID)) == 1


def test_the_halves_of_a_batch_go_on_from_each_other() -> None:
    batch = Batch(ORDERS_0, (3,), 5)
    for n in range(5):
        record = a_record(b"%d" % n)
        batch.add(record, Delivery(), size_of(record))
    batch.base_sequence = 2**31 - 2

    first, second = batch.split()

    assert [r.value for r in (*first.records, *second.records)] == [b"0", b"1", b"2", b"3", b"4"]
    assert (first.base_sequence, second.base_sequence) == (2**31 - 2, 0)
    assert first.place < second.place < (4,)


def test_no_more_batches_pass_one_without_an_answer_than_a_partition_remembers() -> None:
    """Simulated seed 2072085244: the first leader was silent, the next took all that came behind."""
    queue = PartitionQueue(ORDERS_0)
    queue.producer = (101, 0)
    for _ in range(9):
        queue.open_batch(0, 10_000, 100).add(a_record(b"x"), Delivery(), 10_000)
    sent = []
    while (batch := queue.next_ready(0, 100, 0, BATCHES_REMEMBERED)) is not None:
        queue.take(batch)
        queue.number(batch)
        sent.append(batch)
        if len(sent) > 1:
            queue.in_flight.remove(batch)

    assert [batch.base_sequence for batch in sent] == [0, 1, 2, 3, 4]
    queue.in_flight.remove(sent[0])
    assert queue.next_ready(0, 100, 0, BATCHES_REMEMBERED) is not None


@pytest.mark.parametrize("timestamp", [2**63, -2, -(2**70)])
def test_a_record_of_an_impossible_time_is_refused_and_the_others_arrive(timestamp: int) -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)

    with pytest.raises(ValueError, match="is not a timestamp"):
        producer.send("orders", Record(None, b"never", timestamp=timestamp))
    producer.send("orders", Record(None, b"late", timestamp=2**63 - 1))
    flushed(cluster, producer)

    assert values_in(cluster) == [b"late"]
