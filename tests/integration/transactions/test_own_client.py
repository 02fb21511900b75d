"""Transactions of Ottla's own client on three brokers, judged by its own readers and by librdkafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from integration.transactions.librdkafka import committed, fresh, read_to_end
from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.aio import client as aio
from ottla.client.aio.producer import Producer as LoopProducer
from ottla.client.blocking.client import Client
from ottla.client.blocking.producer import Producer
from ottla.client.config import ConsumerConfig
from ottla.client.errors import AbortableError, ProducerFenced, TransactionAborted, WrongTransactionState
from ottla.client.fetching.offsets import list_offsets
from ottla.client.group.config import MembershipConfig
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing.batches import Delivery
from ottla.launch.cluster import Cluster
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from support.running.waiting import wait_until

READ_COMMITTED = 1


class OutOfStock(Exception):
    """What a program raises."""


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.bootstrap_servers) as client:
        yield client


def new_topic(client: Client) -> str:
    topic = fresh("own")
    (row,) = client.run(create_topics, [a_topic(topic, partitions=3)])
    assert row.error_code == ErrorCode.NONE
    return topic


def a_producer(client: Client, name: str | None = None, **settings: object) -> Producer:
    """A producer that is ready for its first transaction."""
    producer = client.producer(transactional_id=name or fresh("own-payments"), **settings)
    producer.init_transactions()
    return producer


def transact_in_vain(producer: Producer, does: Callable[[], object]) -> None:
    with producer.transaction():
        does()
        raise OutOfStock


async def transact_in_vain_in_the_loop(producer: LoopProducer, topic: str) -> None:
    async with producer.transaction():
        await producer.send_and_wait(topic, b"aborted")
        await producer.send(topic, b"perhaps never sent")
        raise OutOfStock


def read_committed(client: Client, topic: str) -> list[str]:
    """What our reader finds up to the last stable offset."""
    partitions = [TopicPartition(topic, number) for number in range(3)]
    ends = client.run(list_offsets, dict.fromkeys(partitions, LATEST), isolation_level=READ_COMMITTED)
    consumer = client.consumer(isolation_level="read_committed")
    consumer.assign(dict.fromkeys(partitions, EARLIEST))
    found: list[str] = []
    while any((consumer.position(each) or 0) < ends[each].offset for each in partitions):
        for records in consumer.poll(1_000).values():
            found += [(record.value or b"").decode() for record in records]
    consumer.assign({})
    return sorted(found)


def test_readers_of_committed_records_see_all_of_a_transaction_or_nothing(
    cluster: Cluster, client: Client
) -> None:
    topic, producer = new_topic(client), a_producer(client)

    with producer.transaction():
        for number in range(3):
            producer.send(topic, b"kept %d" % number, partition=number)
        producer.flush()
        before = read_committed(client, topic)
    with pytest.raises(OutOfStock):
        transact_in_vain(producer, lambda: producer.wait(producer.send(topic, b"aborted", partition=1)))
    unsent: list[Delivery] = []
    with pytest.raises(OutOfStock):
        transact_in_vain(producer, lambda: unsent.append(producer.send(topic, b"never sent")))
    with producer.transaction():
        producer.send(topic, b"last")

    expected = ["kept 0", "kept 1", "kept 2", "last"]
    assert before == []
    assert isinstance(unsent[0].error, TransactionAborted)
    wait_until(lambda: read_committed(client, topic) == expected, "our reader sees what was committed")
    assert read_to_end(cluster.bootstrap_servers, topic) == expected
    assert len(read_to_end(cluster.bootstrap_servers, topic, "read_uncommitted")) == 5


def test_a_second_producer_of_the_id_fences_the_first(client: Client) -> None:
    topic, name = new_topic(client), fresh("own-payments")
    first = a_producer(client, name)
    first.begin_transaction()
    first.send(topic, b"lost", partition=0)
    first.flush()

    second = a_producer(client, name)

    with pytest.raises(ProducerFenced, match="taken over"):
        first.commit_transaction()
    with pytest.raises(ProducerFenced):
        first.send(topic, b"too late")
    first.close()
    with second.transaction():
        second.send(topic, b"kept", partition=0)
    wait_until(lambda: read_committed(client, topic) == ["kept"], "only the second producer's record counts")


def test_what_was_read_counts_as_read_exactly_if_the_results_count(cluster: Cluster, client: Client) -> None:
    source, target, group = new_topic(client), new_topic(client), fresh("own-group")
    with (feed := a_producer(client)).transaction():
        for number in range(6):
            feed.send(source, b"%d" % number, partition=number % 3)
    producer = a_producer(client)
    reading = ConsumerConfig(auto_offset_reset="earliest", isolation_level="read_committed")
    consumer = client.group_consumer(group, [source], reading, MembershipConfig(enable_auto_commit=False))
    values: list[bytes] = []
    while len(values) < 6:
        for records in consumer.poll(1_000).values():
            values += [record.value or b"" for record in records]
    positions, member = consumer.positions(), consumer.group_metadata()

    producer.begin_transaction()
    producer.send(target, b"aborted")
    producer.send_offsets_to_transaction(positions, member)
    producer.abort_transaction()
    nothing = committed(cluster.bootstrap_servers, group, source)
    with producer.transaction():
        for value in values:
            producer.send(target, b"done " + value)
        producer.send_offsets_to_transaction(positions, member)

    assert nothing == {}
    ends = {tp.partition: at.offset for tp, at in positions.items()}
    wait_until(
        lambda: committed(cluster.bootstrap_servers, group, source) == ends, "the offsets are committed"
    )
    wait_until(lambda: len(read_committed(client, target)) == 6, "the results are committed")
    assert read_committed(client, target) == [f"done {number}" for number in range(6)]
    consumer.close()


def test_offsets_of_a_member_that_was_replaced_abort_the_transaction(client: Client) -> None:
    source, group = new_topic(client), fresh("own-group")
    producer = a_producer(client)
    consumer = client.group_consumer(group, [source], None, MembershipConfig(enable_auto_commit=False))
    wait_until(lambda: consumer.poll(100) is not None and consumer.assignment, "the member has its share")
    member = consumer.group_metadata()
    replaced = GroupMetadata(group, member.generation - 1, member.member_id)

    with pytest.raises(AbortableError, match="ILLEGAL_GENERATION"), producer.transaction():
        producer.send_offsets_to_transaction({TopicPartition(source, 0): 1}, replaced)
    with producer.transaction():
        producer.send_offsets_to_transaction({TopicPartition(source, 0): 1}, member)
    consumer.close()


def test_a_transaction_that_took_too_long_is_fenced(client: Client) -> None:
    topic = new_topic(client)
    slow = a_producer(client, transaction_timeout_ms=1_000)
    slow.begin_transaction()
    slow.send(topic, b"late", partition=0)
    slow.flush()
    quick = a_producer(client)
    with quick.transaction():
        quick.send(topic, b"in time", partition=0)

    wait_until(lambda: read_committed(client, topic) == ["in time"], "the abort lets committed readers go on")

    with pytest.raises(ProducerFenced):
        slow.commit_transaction()


def test_the_asyncio_edge_has_transactions_too(cluster: Cluster, client: Client) -> None:
    topic = new_topic(client)

    async def main() -> None:
        async with aio.Client(cluster.bootstrap_servers) as own:
            producer = own.producer(transactional_id=fresh("own-payments"))
            with pytest.raises(WrongTransactionState):
                producer.begin_transaction()
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"kept")
            with pytest.raises(OutOfStock):
                await transact_in_vain_in_the_loop(producer, topic)
            async with producer.transaction():
                await producer.send(topic, b"and flushed")
                await producer.send_offsets_to_transaction(
                    {TopicPartition(topic, 0): 1}, GroupMetadata(fresh("own-group"))
                )
            await producer.close()

    asyncio.run(main())

    wait_until(lambda: read_committed(client, topic) == ["and flushed", "kept"], "what was committed is read")
