"""A group coordinated by one kind of broker goes on at the other: members stay, offsets are equal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.apache import run_tool
from support.mixed import MixedCluster, mixed_cluster
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.apache]

OTTLA, APACHE = 1, 2
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture(scope="module")
def cluster(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    kinds = {OTTLA: "ottla", APACHE: "apache"}
    settings = {
        "offsets.topic.replication.factor": 2,
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    with mixed_cluster(tmp_path_factory.mktemp("groups"), kinds, **settings) as running:
        running.create(OFFSETS_TOPIC, [OTTLA, APACHE], **{"cleanup.policy": "compact"})
        yield running


def a_member(cluster: MixedCluster, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.instance.id": f"{group}-member",
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 500,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def commit(member: Consumer, topic: str, offset: int) -> bool:
    member.poll(0.1)
    try:
        member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    except KafkaException:
        return False
    return True


def committed(cluster: MixedCluster, group: str, topic: str) -> int:
    with_group = a_member(cluster, group)
    try:
        offset = with_group.committed([TopicPartition(topic, 0)], timeout=30)[0].offset
    finally:
        with_group.close()
    return int(offset)


def coordinator(cluster: MixedCluster) -> int:
    state = cluster.state(OFFSETS_TOPIC)
    return -1 if state is None else int(state["leader"])


def test_members_go_on_and_offsets_stay_when_the_coordinator_changes_kind(cluster: MixedCluster) -> None:
    topic, group = "orders", "wanderers"
    cluster.create(topic, [APACHE, OTTLA])
    wait_until(lambda: coordinator(cluster) == OTTLA, "Ottla coordinates")
    member = a_member(cluster, group)
    member.subscribe([topic])
    wait_until(lambda: member.poll(0.1) or member.assignment(), "the member has its share", 60)
    wait_until(lambda: commit(member, topic, 10), "a commit at Ottla")

    cluster.kill(OTTLA)
    wait_until(lambda: coordinator(cluster) == APACHE, "Apache coordinates", 60)
    wait_until(lambda: commit(member, topic, 20), "the member goes on at Apache", 60)
    at_apache = committed(cluster, "reader-only", topic)

    cluster.start_again(OTTLA)
    cluster.wait_for_isr(OFFSETS_TOPIC, 2)
    cluster.kill(APACHE)
    wait_until(lambda: coordinator(cluster) == OTTLA, "Ottla coordinates again", 60)
    wait_until(lambda: member.committed([TopicPartition(topic, 0)], timeout=30)[0].offset == 20, "20", 60)
    wait_until(lambda: commit(member, topic, 30), "the member goes on at Ottla", 60)
    description = run_tool(
        GROUPS_TOOL, "--bootstrap-server", cluster.bootstrap, "--describe", "--group", group
    ).stdout
    member.close()
    cluster.start_again(APACHE)

    assert at_apache < 0, "a group that never committed has no offset"
    assert any(line.split()[:4] == [group, topic, "0", "30"] for line in description.splitlines())
