"""The producer's core: where records go, in which batches, and when."""

from typing import Any

import pytest

from ottla.client.errors import (
    NoSuchPartition,
)
from ottla.client.producing.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeLog
from support.client.producing import ORDERS_0, a_cluster, a_producer, a_record, flushed, values_in


def test_a_record_is_delivered_and_its_offset_known() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    first, second = producer.send("orders", a_record(b"a")), producer.send("orders", a_record(b"b"))

    flushed(cluster, producer)

    assert (first.partition, first.offset, first.timestamp) == (ORDERS_0, 0, 123)
    assert (second.offset, second.error) == (1, None)
    assert values_in(cluster) == [b"a", b"b"]
    assert producer.buffered_bytes == 0


def test_records_with_a_key_go_to_its_partition_and_others_where_they_are_told() -> None:
    cluster = a_cluster([1, 2, 1])
    producer = a_producer(cluster)
    keyed = producer.send("orders", a_record(key=b"customer-7"))
    told = producer.send("orders", a_record(), partition=2)

    flushed(cluster, producer)

    assert keyed.partition == TopicPartition("orders", partition_of_key(b"customer-7", 3))
    assert told.partition == TopicPartition("orders", 2)


def test_a_partition_that_does_not_exist_fails_only_that_record() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    wrong, right = producer.send("orders", a_record(), partition=9), producer.send("orders", a_record())

    flushed(cluster, producer)

    assert isinstance(wrong.error, NoSuchPartition)
    assert str(wrong.error) == "orders has no partition 9, it has 1"
    assert right.error is None


def test_a_record_waits_for_a_partition_that_was_added_just_now_and_others_do_not_wait_for_it() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster)
    producer.send("orders", a_record())
    flushed(cluster, producer)
    early = [producer.send("orders", a_record(b"%d" % n), partition=1) for n in range(2)]
    other = producer.send("orders", a_record())
    cluster.pass_time(1_000)
    assert other.is_done
    assert not any(delivery.is_done for delivery in early)

    cluster.logs[TopicPartition("orders", 1)] = FakeLog(1)
    late = producer.send("orders", a_record(b"2"), partition=1)
    flushed(cluster, producer)

    assert [(d.error, d.offset) for d in (*early, late)] == [(None, 0), (None, 1), (None, 2)]


def test_records_wait_for_the_linger_unless_a_batch_is_full_or_flushed() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, linger_ms=100, batch_size=1_000)
    producer.send("orders", a_record())
    cluster.pass_time(90)
    assert values_in(cluster) == []

    cluster.pass_time(20)
    assert len(values_in(cluster)) == 1

    full = [producer.send("orders", a_record(b"x" * 400)) for _ in range(3)]
    cluster.settle()
    assert [delivery.is_done for delivery in full] == [True, True, False]

    flushed(cluster, producer)
    assert full[2].is_done


def test_batches_of_several_partitions_share_a_request_to_their_leader() -> None:
    cluster = a_cluster([1, 1, 2])
    producer = a_producer(cluster)
    for partition in range(3):
        producer.send("orders", a_record(), partition=partition)

    flushed(cluster, producer)

    sizes = {b: [len(t.partition_data) for t in m.topic_data] for b, _, m in cluster.requests(ApiKey.PRODUCE)}
    assert sizes == {1: [2], 2: [1]}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_sent_as_such(codec: Any) -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, compression_type=codec)
    producer.send("orders", a_record(b"x" * 5_000))

    flushed(cluster, producer)

    header = read_header(cluster.logs[ORDERS_0].data[0])
    assert header.codec_id == producer.config.codec
    assert values_in(cluster) == [b"x" * 5_000]


def test_without_acks_a_record_is_done_when_it_is_sent() -> None:
    cluster = a_cluster()
    producer = a_producer(cluster, acks=0)
    delivery = producer.send("orders", a_record())

    flushed(cluster, producer)

    assert (delivery.error, delivery.offset) == (None, -1)
    assert values_in(cluster) == [b"value"]
    assert cluster.requests(ApiKey.INIT_PRODUCER_ID) == []
