"""A producer's core before a fake cluster that holds the topic ``orders``."""

from typing import Any

from ottla.client.config import ProducerConfig
from ottla.client.producing.producer import ProducerCore
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.record import Record
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch
from ottla.wire.apis.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def a_producer(cluster: FakeCluster, **settings: Any) -> ProducerCore:
    return ProducerCore(cluster.engine, ProducerConfig(**settings))


def a_cluster(leaders: list[int] | None = None, **settings: Any) -> FakeCluster:
    cluster = FakeCluster(**settings)
    cluster.topic("orders", leaders or [1])
    return cluster


def a_record(value: bytes = b"value", key: bytes | None = None) -> Record:
    return Record(key, value, (), 123)


def flushed(cluster: FakeCluster, producer: ProducerCore) -> None:
    cluster.run(producer.flush())


def refusal(code: int, *, leader: LeaderIdAndEpoch | None = None) -> Any:
    """An answer to Produce that refuses every batch."""

    def answer(request: ProduceRequest) -> ProduceResponse:
        rows = []
        for topic in request.topic_data:
            parts = [
                PartitionProduceResponse(
                    index=data.index, error_code=code, current_leader=leader or LeaderIdAndEpoch()
                )
                for data in topic.partition_data
            ]
            rows.append(TopicProduceResponse(name=topic.name, partition_responses=parts))
        return ProduceResponse(responses=rows)

    return answer


def values_in(cluster: FakeCluster, partition: TopicPartition = ORDERS_0) -> list[bytes | None]:
    return [record.value for record in cluster.logs[partition].records()]


def numbers_sent(cluster: FakeCluster, partition: int = 0) -> list[tuple[int, int, int]]:
    """Producer id, epoch and first sequence of every batch that was sent to a partition."""
    data = [
        data.records
        for _, _, request in cluster.requests(ApiKey.PRODUCE)
        for data in request.topic_data[0].partition_data
        if data.index == partition
    ]
    headers = [read_header(records) for records in data if records is not None]
    return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers]
