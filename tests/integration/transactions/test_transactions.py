"""Transactions of librdkafka on three brokers: committed is seen, aborted is not, offsets go along."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, TopicPartition

from integration.transactions.librdkafka import a_consumer, a_producer, committed, fresh, read_to_end, write
from ottla.launch.cluster import Cluster
from support.running.waiting import wait_until


def test_committed_records_are_read_and_aborted_ones_are_not(cluster: Cluster) -> None:
    topic, servers = fresh("orders"), cluster.bootstrap_servers
    producer = a_producer(servers, fresh("payments"))

    producer.begin_transaction()
    write(producer, topic, ["a", "b", "c"])
    producer.commit_transaction()
    producer.begin_transaction()
    write(producer, topic, ["d", "e"])
    producer.abort_transaction()
    producer.begin_transaction()
    write(producer, topic, ["f"])
    open_ones = read_to_end(servers, topic)
    producer.commit_transaction()

    wait_until(lambda: read_to_end(servers, topic) == ["a", "b", "c", "f"], "what is committed is read")
    assert "f" not in open_ones
    assert read_to_end(servers, topic, "read_uncommitted") == list("abcdef")


def test_offsets_are_committed_with_the_transaction(cluster: Cluster) -> None:
    """Consume, transform, produce: what was read counts as read exactly if the results count."""
    source, target, group = fresh("source"), fresh("target"), fresh("group")
    servers = cluster.bootstrap_servers
    feeding = a_producer(servers, fresh("feed"))
    feeding.begin_transaction()
    write(feeding, source, ["1", "2", "3"], partition=0)
    feeding.commit_transaction()
    producer = a_producer(servers, fresh("transform"))
    with a_consumer(servers, group, source) as consumer:
        read = []
        while len(read) < 3:
            message = consumer.poll(30)
            assert message is not None, "the records come"
            if message.error() is None:
                read.append(message)
        after = [TopicPartition(source, 0, read[-1].offset() + 1)]

        producer.begin_transaction()
        write(producer, target, [f"aborted {message.value().decode()}" for message in read])
        producer.send_offsets_to_transaction(after, consumer.consumer_group_metadata(), 30)
        producer.abort_transaction()
        assert committed(servers, group, source) == {}

        producer.begin_transaction()
        write(producer, target, [f"done {message.value().decode()}" for message in read])
        producer.send_offsets_to_transaction(after, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction()

    wait_until(lambda: committed(servers, group, source) == {0: 3}, "the offsets are committed")
    wait_until(lambda: len(read_to_end(servers, target)) == 3, "the results are committed")
    assert read_to_end(servers, target) == ["done 1", "done 2", "done 3"]


def test_a_second_producer_of_the_id_fences_the_first(cluster: Cluster) -> None:
    topic, name, servers = fresh("orders"), fresh("payments"), cluster.bootstrap_servers
    first = a_producer(servers, name)
    first.begin_transaction()
    write(first, topic, ["lost"])

    second = a_producer(servers, name)

    with pytest.raises(KafkaException) as refused:
        first.commit_transaction()
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    write(second, topic, ["kept"])
    second.commit_transaction()
    wait_until(lambda: read_to_end(servers, topic) == ["kept"], "only the second producer's record counts")


def test_a_transaction_that_takes_too_long_is_aborted(cluster: Cluster) -> None:
    topic, name, servers = fresh("orders"), fresh("payments"), cluster.bootstrap_servers
    slow = a_producer(servers, name, **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    write(slow, topic, ["late"], partition=0)
    quick = a_producer(servers, fresh("other"))
    quick.begin_transaction()
    write(quick, topic, ["in time"], partition=0)
    quick.commit_transaction()

    wait_until(lambda: read_to_end(servers, topic) == ["in time"], "the abort lets committed readers go on")

    with pytest.raises(KafkaException):
        slow.commit_transaction()
