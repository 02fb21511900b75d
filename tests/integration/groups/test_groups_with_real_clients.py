"""Consumer groups of real clients: shares, rebalances, commits, and a coordinator that dies."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.cluster import Cluster
from support.running.waiting import wait_until

_numbers = itertools.count()


def fresh(name: str) -> str:
    return f"{name}-{next(_numbers)}"


def a_topic(cluster: Cluster, partitions: int = 4) -> str:
    topic = fresh("orders")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(timeout=30)
    return topic


def produce(cluster: Cluster, topic: str, values: range) -> None:
    failures: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "enable.idempotence": True}
    )
    for value in values:
        producer.produce(
            topic,
            str(value).encode(),
            key=str(value).encode(),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failures


def a_consumer(cluster: Cluster, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            **settings,
        }
    )


class Reader:
    """Several consumers of one group, polled in turn, and what each was given."""

    def __init__(self, members: list[Consumer]) -> None:
        self.members = members
        self.seen: dict[tuple[int, int], int] = {}
        self.times: dict[tuple[int, int], int] = defaultdict(int)

    def poll(self) -> None:
        for member in self.members:
            for message in member.consume(500, 0.05):
                if message.error() is None:
                    at = (message.partition(), message.offset())
                    self.seen[at] = int(message.value())
                    self.times[at] += 1

    def read_until(self, count: int) -> None:
        wait_until(lambda: self.poll() or len(self.seen) >= count, f"{count} records are read", 60, every=0)

    def owned(self) -> list[set[int]]:
        return [{tp.partition for tp in member.assignment()} for member in self.members]

    def settle(self, partitions: int) -> None:
        """Until every partition has one owner and every member has a share."""

        def is_settled() -> bool:
            self.poll()
            owned = self.owned()
            return all(owned) and sum(map(len, owned)) == partitions == len(set().union(*owned))

        wait_until(is_settled, "the group is stable", 60, every=0)

    def close(self) -> None:
        for member in self.members:
            member.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_hand_them_over(cluster: Cluster, strategy: str) -> None:
    topic, group = a_topic(cluster), fresh("readers")
    settings = {"partition.assignment.strategy": strategy}
    reader = Reader([a_consumer(cluster, group, **settings) for _ in range(2)])
    for member in reader.members:
        member.subscribe([topic])
    reader.settle(4)
    produce(cluster, topic, range(500))
    reader.read_until(500)
    for member in reader.members:
        member.commit(asynchronous=False)

    leaver = reader.members.pop()
    leaver.close()
    reader.settle(4)
    produce(cluster, topic, range(500, 800))
    reader.read_until(800)
    reader.close()

    assert sorted(reader.seen.values()) == list(range(800))
    assert set(reader.times.values()) == {1}, "what was committed is not delivered again"


def test_a_committed_offset_survives_the_death_of_its_coordinator(cluster: Cluster) -> None:
    topic, group = a_topic(cluster, partitions=1), fresh("readers")
    produce(cluster, topic, range(100))
    reader = Reader([a_consumer(cluster, group)])
    reader.members[0].subscribe([topic])
    reader.read_until(100)
    reader.members[0].commit(offsets=[TopicPartition(topic, 0, 60)], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    coordinator = admin.describe_consumer_groups([group])[group].result(timeout=30).coordinator.id

    cluster.brokers[coordinator].kill()
    try:
        wait_until(lambda: commits(reader.members[0], topic, 70), "the group goes on elsewhere", 60)
        reader.close()
        second = Reader([a_consumer(cluster, group)])
        second.members[0].subscribe([topic])
        second.read_until(30)
        second.close()
    finally:
        cluster.start_broker(coordinator)

    assert min(offset for _, offset in second.seen) == 70


def commits(member: Consumer, topic: str, offset: int) -> bool:
    member.poll(0.1)
    try:
        member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    except KafkaException:
        return False
    return True


def test_a_static_member_comes_back_to_its_partitions(cluster: Cluster) -> None:
    topic, group = a_topic(cluster), fresh("readers")
    reader = Reader([a_consumer(cluster, group, **{"group.instance.id": name}) for name in ("a", "b")])
    for member in reader.members:
        member.subscribe([topic])
    reader.settle(4)
    before = reader.owned()

    reader.members[1].close()
    reader.members[1] = a_consumer(cluster, group, **{"group.instance.id": "b"})
    reader.members[1].subscribe([topic])
    reader.settle(4)

    assert reader.owned() == before
    reader.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_kafka_python_reads_in_a_group(cluster: Cluster) -> None:
    from kafka import KafkaConsumer

    topic, group = a_topic(cluster), fresh("readers")
    produce(cluster, topic, range(200))
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    values: list[int] = []

    def read() -> bool:
        for records in consumer.poll(timeout_ms=200).values():
            values.extend(int(record.value) for record in records)
        return len(values) >= 200

    wait_until(read, "all records are read", 60, every=0)
    consumer.commit()
    consumer.close()

    assert sorted(values) == list(range(200))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_aiokafka_reads_in_a_group(cluster: Cluster) -> None:
    from aiokafka import AIOKafkaConsumer

    topic, group = a_topic(cluster), fresh("readers")
    produce(cluster, topic, range(200))

    async def read() -> list[int]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        values: list[int] = []
        try:
            async with asyncio.timeout(60):
                while len(values) < 200:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values.extend(int(record.value) for record in records)
            await consumer.commit()
        finally:
            await consumer.stop()
        return values

    assert sorted(asyncio.run(read())) == list(range(200))


def test_groups_are_listed_described_and_deleted(cluster: Cluster) -> None:
    topic, group = a_topic(cluster), fresh("readers")
    produce(cluster, topic, range(50))
    reader = Reader([a_consumer(cluster, group)])
    reader.members[0].subscribe([topic])
    reader.read_until(50)
    reader.members[0].commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    listed = {found.group_id for found in admin.list_consumer_groups().result(timeout=30).valid}
    described = admin.describe_consumer_groups([group])[group].result(timeout=30)
    reader.close()
    wait_until(
        lambda: admin.describe_consumer_groups([group])[group].result(timeout=30).state.name == "EMPTY",
        "the group is empty",
    )
    admin.delete_consumer_groups([group])[group].result(timeout=30)
    left = {found.group_id for found in admin.list_consumer_groups().result(timeout=30).valid}

    assert group in listed
    assert described.state.name == "STABLE"
    assert len(described.members) == 1
    assert group not in left
