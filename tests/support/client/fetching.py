"""A consumer's core before a fake cluster that holds the topic ``orders``."""

from collections.abc import Mapping
from typing import Any

from ottla.client.config import ConsumerConfig
from ottla.client.fetching.decoding import Position
from ottla.client.fetching.fetcher import FetchCore
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from support.client.fake_cluster import FakeCluster

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def a_cluster(leaders: list[int] | None = None, **settings: Any) -> FakeCluster:
    cluster = FakeCluster(**settings)
    cluster.topic("orders", leaders or [1])
    return cluster


def fill(cluster: FakeCluster, partition: TopicPartition, *batches: list[bytes]) -> None:
    for values in batches:
        cluster.logs[partition].append(bytes(build_batch([Record(None, v, (), 5) for v in values])))


def a_consumer(
    cluster: FakeCluster, positions: Mapping[TopicPartition, int | Position], **settings: Any
) -> FetchCore:
    consumer = FetchCore(cluster.engine, ConsumerConfig(**settings))
    consumer.assign(positions)
    return consumer


def taken(cluster: FakeCluster, consumer: FetchCore, count: int = 500) -> list[bytes | None]:
    cluster.run_until(lambda: consumer.has_data)
    return [record.value for records in consumer.take(count).values() for record in records]
