"""Ottla's own client in groups that Apache coordinates, beside librdkafka's members: either may lead."""

from __future__ import annotations

import itertools

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.client.blocking.client import Client
from ottla.client.config import ConsumerConfig
from ottla.client.group.config import MembershipConfig
from support.processes.apache import ApacheCluster
from support.running.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

EARLIEST = ConsumerConfig(auto_offset_reset="earliest", fetch_max_wait_ms=100)
PARTITIONS = 4
_numbers = itertools.count()


def a_topic(cluster: ApacheCluster) -> str:
    topic = f"own-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(timeout=30)
    return topic


def another_kind_of_member(cluster: ApacheCluster, topic: str, strategy: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"g-{topic}",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 10_000,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    return consumer


@pytest.mark.parametrize("ours_is_first", [True, False], ids=["we lead", "they lead"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_both_kinds_share_a_topic_and_what_one_leaves_the_other_takes(
    one_apache: ApacheCluster, strategy: str, ours_is_first: bool
) -> None:
    topic = a_topic(one_apache)
    membership = MembershipConfig(
        partition_assignment_strategy=(strategy,), heartbeat_interval_ms=200, session_timeout_ms=10_000
    )
    with Client(one_apache.bootstrap) as client:
        theirs = None if ours_is_first else another_kind_of_member(one_apache, topic, strategy)
        if theirs is not None:
            first = theirs
            wait_until(lambda: first.poll(0.1) or len(first.assignment()) == PARTITIONS, "they have all", 60)
        ours = client.group_consumer(f"g-{topic}", [topic], EARLIEST, membership)
        if theirs is None:

            def we_have_all() -> bool:
                ours.poll(50)
                return len(ours.assignment) == PARTITIONS

            wait_until(we_have_all, "we have all", 60, every=0)
            theirs = another_kind_of_member(one_apache, topic, strategy)
        other = theirs

        def is_shared() -> bool:
            ours.poll(50)
            other.poll(0.05)
            numbers = {tp.partition for tp in other.assignment()}
            return len(numbers) == len(ours.assignment) == 2 and not numbers & {
                tp.partition for tp in ours.assignment
            }

        wait_until(is_shared, "both have two partitions", 60, every=0)
        other.close()

        def is_ours() -> bool:
            ours.poll(50)
            return len(ours.assignment) == PARTITIONS

        wait_until(is_ours, "what they left is ours", 60, every=0)
        ours.close()
