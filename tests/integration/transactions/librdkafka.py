"""Transactions with librdkafka: a producer with a transactional id, and readers of what it committed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

TIMEOUT_S = 30
_numbers = itertools.count()


def fresh(name: str) -> str:
    """A name that no other test has."""
    return f"{name}-{next(_numbers)}"


def a_producer(bootstrap_servers: str, transactional_id: str, **settings: Any) -> Producer:
    """A producer that is ready for its first transaction."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "transactional.id": transactional_id, **settings}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def write(producer: Producer, topic: str, values: Iterable[str], **settings: Any) -> None:
    """Send records, and wait until each is acknowledged."""
    errors: list[KafkaError] = []
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: errors.append(error) if error else None, **settings
        )
    left = producer.flush(TIMEOUT_S)
    assert (left, errors) == (0, [])


@contextmanager
def a_consumer(
    bootstrap_servers: str, group: str, topic: str, isolation: str = "read_committed", **settings: Any
) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def read_to_end(bootstrap_servers: str, topic: str, isolation: str = "read_committed") -> list[str]:
    """What a reader finds from the beginning up to where it must stop now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": fresh("reader"),
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[str] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"{topic} has an end"
            error = message.error()
            if error is None:
                found.append(message.value().decode())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        return sorted(found)
    finally:
        consumer.close()


def committed(bootstrap_servers: str, group: str, topic: str) -> dict[int, int]:
    """The offsets that a group has committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    try:
        partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        rows = consumer.committed([TopicPartition(topic, each) for each in partitions], TIMEOUT_S)
        return {row.partition: row.offset for row in rows if row.offset >= 0}
    finally:
        consumer.close()
