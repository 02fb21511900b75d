"""Ottla's own client as a member of groups: alone, with others of its kind, and in both edges."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from ottla.client.aio import client as aio
from ottla.client.blocking.client import Client
from ottla.client.blocking.group import GroupConsumer
from ottla.client.config import ConsumerConfig
from ottla.client.errors import BrokerError
from ottla.client.group.config import MembershipConfig
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from support.running.waiting import wait_until

_numbers = itertools.count()
EARLIEST = ConsumerConfig(auto_offset_reset="earliest", fetch_max_wait_ms=100)
STRATEGIES = [("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",)]


def a_topic(cluster: Cluster, partitions: int = 4) -> str:
    topic = f"own-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(timeout=30)
    return topic


def fill(client: Client, topic: str, values: range, partitions: int = 4) -> None:
    producer = client.producer()
    for value in values:
        producer.send(topic, str(value).encode(), partition=value % partitions)
    producer.flush()


def membership(strategy: tuple[str, ...] = ("range",), *, auto_commit: bool = False) -> MembershipConfig:
    return MembershipConfig(
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms=200,
        session_timeout_ms=10_000,
        max_poll_interval_ms=20_000,
        enable_auto_commit=auto_commit,
    )


class Members:
    """Consumers of one client, polled in turn, and what they were given."""

    def __init__(self, consumers: list[GroupConsumer]) -> None:
        self.consumers = consumers
        self.seen: list[int] = []

    def poll(self) -> None:
        for consumer in self.consumers:
            for records in consumer.poll(20).values():
                self.seen += [int(record.value or b"") for record in records]

    def settle(self, partitions: int) -> None:
        def is_settled() -> bool:
            self.poll()
            shares = [consumer.assignment for consumer in self.consumers]
            return all(shares) and sum(map(len, shares)) == partitions == len(frozenset().union(*shares))

        wait_until(is_settled, "every partition has one owner", 60, every=0)

    def read_until(self, count: int) -> None:
        def is_read() -> bool:
            self.poll()
            return len(self.seen) >= count

        wait_until(is_read, f"{count} records are read", 60, every=0)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda names: names[0])
def test_members_share_the_partitions_and_hand_them_over(cluster: Cluster, strategy: tuple[str, ...]) -> None:
    topic = a_topic(cluster)
    with Client(cluster.bootstrap_servers) as client:
        members = Members(
            [client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership(strategy)) for _ in range(2)]
        )
        members.settle(4)
        fill(client, topic, range(200))
        members.read_until(200)
        for consumer in members.consumers:
            consumer.commit()

        members.consumers.pop().close()
        members.settle(4)
        fill(client, topic, range(200, 300))
        members.read_until(300)
        members.consumers[0].close()

    assert sorted(members.seen) == list(range(300))


def test_what_was_polled_is_committed_when_the_member_closes(cluster: Cluster) -> None:
    topic = a_topic(cluster)
    with Client(cluster.bootstrap_servers) as client:
        fill(client, topic, range(40))
        first = Members(
            [client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership(auto_commit=True))]
        )
        first.read_until(40)
        first.consumers[0].close()

        second = Members(
            [client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership(auto_commit=True))]
        )
        second.settle(4)
        fill(client, topic, range(40, 44))
        second.read_until(4)
        second.consumers[0].close()

    assert sorted(second.seen) == list(range(40, 44))


def test_a_static_member_that_comes_back_gets_what_was_added_while_it_was_away(cluster: Cluster) -> None:
    topic = a_topic(cluster)
    static = replace(membership(), group_instance_id="static")
    with Client(cluster.bootstrap_servers) as client:
        first = Members([client.group_consumer(f"g-{topic}", [topic], EARLIEST, static)])
        first.settle(4)
        first.consumers[0].close()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 6)])[topic].result(timeout=30)

        second = Members([client.group_consumer(f"g-{topic}", [topic], EARLIEST, static)])
        second.settle(6)
        second.consumers[0].close()


def test_a_partition_of_another_cannot_be_committed(cluster: Cluster) -> None:
    topic = a_topic(cluster)
    with Client(cluster.bootstrap_servers) as client:
        members = Members([client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership())])
        members.settle(4)

        with pytest.raises(BrokerError, match="no longer assigned"):
            members.consumers[0].commit({TopicPartition(topic, 99): 5})
        members.consumers[0].close()


def test_a_member_in_asyncio_reads_and_commits(cluster: Cluster) -> None:
    topic = a_topic(cluster)

    async def read_all() -> list[int]:
        seen: list[int] = []
        async with aio.Client(cluster.bootstrap_servers) as client, asyncio.timeout(60):
            consumer = client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership())
            while len(seen) < 50:
                for records in (await consumer.poll(500)).values():
                    seen += [int(record.value or b"") for record in records]
            await consumer.commit()
            await consumer.close()
        return seen

    with Client(cluster.bootstrap_servers) as filler:
        fill(filler, topic, range(50))

    assert sorted(asyncio.run(read_all())) == list(range(50))
