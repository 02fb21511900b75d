"""Ottla's client at Apache brokers: every codec and acks, transactions, administration, a killed leader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from ottla.client.admin.cluster import (
    alter_partition_reassignments,
    describe_cluster,
    describe_log_dirs,
    elect_leaders,
    list_partition_reassignments,
)
from ottla.client.admin.configs import ConfigOperation, ResourceType, alter_configs, describe_configs
from ottla.client.admin.groups import (
    alter_group_offsets,
    delete_group,
    delete_group_offsets,
    describe_group,
    list_group_offsets,
    list_groups,
)
from ottla.client.admin.topics import (
    a_topic,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topics,
)
from ottla.client.aio import client as aio
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig, parse_bootstrap_servers
from ottla.client.errors import BrokerError, ProducerFenced
from ottla.client.fetching.offsets import list_offsets
from ottla.client.group.metadata import GroupMetadata
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.record import Record
from support.processes.apache import ApacheCluster, apache_cluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def client(one_apache: ApacheCluster) -> Iterator[Client]:
    with Client(one_apache.bootstrap) as client:
        yield client


def new_topic(client: Client, **shape: Any) -> str:
    name = f"client-{uuid4().hex[:10]}"
    (row,) = client.run(create_topics, [a_topic(name, **{"partitions": 1, **shape})])
    assert row.error_code == ErrorCode.NONE, row.error_message
    return name


def all_records(client: Client, partitions: list[TopicPartition], **settings: Any) -> list[Record]:
    """Everything up to the present end of some partitions."""
    ends = client.run(list_offsets, dict.fromkeys(partitions, LATEST))
    consumer = client.consumer(**settings)
    consumer.assign(dict.fromkeys(partitions, EARLIEST))
    records: list[Record] = []
    while any((consumer.position(p) or 0) < ends[p].offset for p in partitions):
        for polled in consumer.poll(10_000, 10_000).values():
            records += polled
    return records


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_and_acks_are_read_as_they_were_sent(
    client: Client, one_apache: ApacheCluster, codec: Any, acks: Any
) -> None:
    topic = new_topic(client)
    producer = client.producer(acks=acks, compression_type=codec)
    values = [b"%d" % n * (1 + n % 50) for n in range(400)] + [b"x" * 100_000]
    for n, value in enumerate(values):
        producer.send(topic, value, key=b"%d" % n, headers=(("n", b"%d" % n), ("null", None)))
    producer.send(topic, None)
    producer.flush()
    partition = TopicPartition(topic, 0)
    client.run(list_offsets, {partition: LATEST})

    ours = all_records(client, [partition])
    theirs = read_by_librdkafka(one_apache.bootstrap, topic, len(values) + 1)

    assert [record.value for record in ours] == [*values, None]
    assert ours[3].headers == (("n", b"3"), ("null", None))
    assert [record.offset for record in ours] == list(range(len(ours)))
    assert [message.value() for message in theirs] == [*values, None]
    assert theirs[3].headers() == [("n", b"3"), ("null", None)]
    assert [message.timestamp()[1] for message in theirs] == [record.timestamp for record in ours]


def read_by_librdkafka(bootstrap: str, topic: str, count: int) -> list[Any]:
    consumer = ConfluentConsumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        consumer.assign([ConfluentTopicPartition(topic, 0, 0)])
        messages: list[Any] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), timeout=10)
            assert batch, "librdkafka found no more records"
            messages += batch
        return messages
    finally:
        consumer.close()


def test_keys_go_to_the_partitions_that_librdkafkas_murmur2_chooses(
    client: Client, one_apache: ApacheCluster
) -> None:
    topic = new_topic(client, partitions=7)
    keys = [b"key-%d" % n for n in range(50)] + [b""]
    producer = client.producer()
    deliveries = [producer.send(topic, b"ours", key=key) for key in keys]
    producer.flush()
    chosen: dict[bytes, int] = {}
    settings = {"bootstrap.servers": one_apache.bootstrap, "partitioner": "murmur2", "log_level": 0}
    confluent = ConfluentProducer(settings)
    for key in keys:
        confluent.produce(
            topic, b"theirs", key=key, on_delivery=lambda _, m: chosen.update({m.key() or b"": m.partition()})
        )
    assert confluent.flush(20) == 0

    ours = {key: d.partition.partition for key, d in zip(keys, deliveries, strict=True) if d.partition}

    assert ours == chosen


def test_read_committed_leaves_out_what_was_aborted(client: Client, one_apache: ApacheCluster) -> None:
    topic = new_topic(client)
    settings = {"bootstrap.servers": one_apache.bootstrap, "transactional.id": topic, "log_level": 0}
    producer = ConfluentProducer(settings)
    producer.init_transactions(30)
    for outcome in ("commit", "abort", "commit", "abort", "commit"):
        producer.begin_transaction()
        for n in range(3):
            producer.produce(topic, f"{outcome}-{n}".encode())
        producer.flush(30)
        (producer.commit_transaction if outcome == "commit" else producer.abort_transaction)(30)
    partition = TopicPartition(topic, 0)

    committed = all_records(client, [partition], isolation_level="read_committed")
    everything = all_records(client, [partition])

    assert [r.value for r in committed] == [b"commit-0", b"commit-1", b"commit-2"] * 3
    assert len(everything) == 15


def test_our_transactions_are_whole_and_fenced_as_apache_does_it(client: Client) -> None:
    topic, group = new_topic(client, partitions=2), f"group-{uuid4().hex[:10]}"
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    producer = client.producer(transactional_id=topic)
    producer.init_transactions()
    for number, outcome in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        for partition in range(2):
            producer.send(topic, f"{outcome}-{number}".encode(), partition=partition)
        producer.flush()
        producer.send_offsets_to_transaction({partitions[0]: number + 1}, GroupMetadata(group))
        (producer.commit_transaction if outcome == "commit" else producer.abort_transaction)()
    producer.begin_transaction()
    producer.send(topic, b"lost", partition=0)
    producer.flush()
    second = client.producer(transactional_id=topic)
    second.init_transactions()
    with pytest.raises(ProducerFenced):
        producer.commit_transaction()
    with second.transaction():
        second.send(topic, b"last", partition=1)

    def is_stable() -> bool:
        ends = [
            client.run(list_offsets, dict.fromkeys(partitions, LATEST), isolation_level=level)
            for level in (0, 1)
        ]
        return ends[0] == ends[1]

    wait_until(is_stable, "the markers are written")
    kept = all_records(client, partitions, isolation_level="read_committed")
    expected = [b"commit-0", b"commit-0", b"commit-2", b"commit-2", b"last"]
    assert sorted(record.value or b"" for record in kept) == expected
    assert len(all_records(client, partitions)) == 8
    wait_until(
        lambda: client.run(list_group_offsets, group)[partitions[0]].committed_offset == 3,
        "the offsets of the last commit count",
    )


def test_topics_are_administered(client: Client) -> None:
    topic = new_topic(client, partitions=2, configs={"retention.ms": "1000000"})
    (again,) = client.run(create_topics, [a_topic(topic, partitions=1)])
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS

    resource = (ResourceType.TOPIC, topic)
    change = {resource: {"retention.ms": (ConfigOperation.SET, "2000000")}}
    assert [row.error_code for row in client.run(alter_configs, change)] == [0]
    (described,) = client.run(describe_configs, [resource], keys=["retention.ms"])
    assert [config.value for config in described.configs] == ["2000000"]

    assert [row.error_code for row in client.run(create_partitions, {topic: 3})] == [0]
    wait_until(lambda: len(client.run(describe_topics, [topic]).topics[0].partitions) == 3, "3 partitions")

    (deleted,) = client.run(delete_topics, [topic])
    assert deleted.error_code == 0
    names = {row.name for row in client.run(describe_topics).topics}
    assert topic not in names or client.run(describe_topics, [topic]).topics[0].error_code


def test_the_cluster_is_described(client: Client, one_apache: ApacheCluster) -> None:
    topic = new_topic(client)
    cluster = client.run(describe_cluster)
    (broker,) = one_apache.brokers

    assert (cluster.controller_id, [row.broker_id for row in cluster.brokers]) == (broker, [broker])
    elected = client.run(elect_leaders, [TopicPartition(topic, 0)])
    assert elected[TopicPartition(topic, 0)].error_code == ErrorCode.ELECTION_NOT_NEEDED
    moved = client.run(alter_partition_reassignments, {TopicPartition(topic, 0): None})
    assert moved[TopicPartition(topic, 0)].error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert client.run(list_partition_reassignments) == {}
    (directory,) = client.run(describe_log_dirs, [broker])[broker]
    assert topic in {row.name for row in directory.topics}
    (described,) = client.run(describe_configs, [(ResourceType.BROKER, str(broker))], keys=["broker.id"])
    assert [config.value for config in described.configs] == [str(broker)]


def test_offsets_are_found_by_time_and_records_deleted(client: Client) -> None:
    partition = TopicPartition(new_topic(client), 0)
    producer = client.producer()
    for timestamp in (1_000, 2_000, 3_000):
        producer.wait(producer.send(partition.topic, b"v", timestamp_ms=timestamp))

    assert client.run(list_offsets, {partition: 1_500})[partition].offset == 1
    assert client.run(delete_records, {partition: 2})[partition].low_watermark == 2
    assert client.run(list_offsets, {partition: EARLIEST})[partition].offset == 2


def test_the_offsets_of_a_group_are_set_read_and_forgotten(client: Client) -> None:
    partition = TopicPartition(new_topic(client), 0)
    group = f"group-{uuid4().hex[:8]}"

    assert client.run(alter_group_offsets, group, {partition: 5}) == {partition: 0}
    assert client.run(list_group_offsets, group)[partition].committed_offset == 5
    assert group in {row.group_id for row in client.run(list_groups)}
    assert client.run(describe_group, group).group_state == "Empty"
    assert client.run(delete_group_offsets, group, [partition]) == {partition: 0}
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        client.run(delete_group, f"{group}-not-there")


def test_the_asyncio_edge_does_the_same(one_apache: ApacheCluster) -> None:
    async def produce_and_consume() -> tuple[list[bytes | None], int]:
        async with aio.Client(one_apache.bootstrap) as client:
            topic = f"client-{uuid4().hex[:10]}"
            await client.run(create_topics, [a_topic(topic, partitions=2)])
            producer = client.producer(linger_ms=5)
            futures = [await producer.send(topic, b"%d" % n, partition=n % 2) for n in range(1_000)]
            await producer.flush()
            last = await producer.send_and_wait(topic, b"last", partition=0)
            assert all(future.result().offset >= 0 for future in futures)
            consumer = client.consumer()
            consumer.assign({TopicPartition(topic, n): EARLIEST for n in range(2)})
            values: list[bytes | None] = []
            while len(values) < 1_001:
                polled = await consumer.poll(10_000)
                assert polled, "no more records came"
                values += [record.value for records in polled.values() for record in records]
            return values, last.offset

    values, last_offset = asyncio.run(produce_and_consume())

    assert last_offset == 500
    assert sorted(values, key=str) == sorted([*(b"%d" % n for n in range(1_000)), b"last"], key=str)


@pytest.mark.full("an Apache cluster of its own")
def test_a_killed_leader_costs_no_record_and_doubles_none(tmp_path: Path) -> None:
    with apache_cluster(tmp_path, 2, min_insync_replicas=1) as cluster:
        servers = parse_bootstrap_servers(cluster.bootstrap)
        config = ClientConfig(bootstrap_servers=servers, request_timeout_ms=5_000)
        with Client(config) as client:
            topic = new_topic(client, partitions=2, replication_factor=2)
            producer = client.producer(batch_size=2_000)
            deliveries = []
            for n in range(6_000):
                deliveries.append(producer.send(topic, b"%d" % n, partition=n % 2))
                if n == 2_000:
                    cluster.brokers[2].kill()
            producer.flush()
            partitions = [TopicPartition(topic, n) for n in range(2)]

            assert [str(d.error) for d in deliveries if d.error is not None] == []
            for partition in partitions:
                values = [record.value for record in all_records(client, [partition])]
                assert values == [b"%d" % n for n in range(partition.partition, 6_000, 2)]


@pytest.mark.parametrize("edge", ["blocking", "aio"])
def test_what_was_flushed_without_acks_arrives_though_the_client_closes_at_once(
    client: Client, one_apache: ApacheCluster, edge: str
) -> None:
    topic = new_topic(client)
    value = b"x" * 900_000

    async def send() -> None:
        async with aio.Client(one_apache.bootstrap) as other:
            producer = other.producer(acks=0)
            for _ in range(20):
                await producer.send(topic, value)
            await producer.flush()

    if edge == "aio":
        asyncio.run(send())
    else:
        with Client(one_apache.bootstrap) as other:
            producer = other.producer(acks=0)
            for _ in range(20):
                producer.send(topic, value)
            producer.flush()

    partition = TopicPartition(topic, 0)
    wait_until(lambda: client.run(list_offsets, {partition: LATEST})[partition].offset == 20, "all 20")
