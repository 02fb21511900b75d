"""A group coordinated by one kind of broker goes on at the other: members stay, offsets are equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.clusters.mixed import MixedCluster, mixed_cluster
from support.members.drill import Drill
from support.members.programs import KINDS
from support.processes.apache_tools import run_main
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.apache]

OTTLA, APACHE = 1, 2
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 4
PATIENCE = ("--timeout", "60000")


@pytest.fixture(scope="module")
def cluster(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    kinds = {OTTLA: "ottla", APACHE: "apache"}
    settings = {
        "offsets.topic.replication.factor": 2,
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
    }
    with mixed_cluster(tmp_path_factory.mktemp("groups"), kinds, **settings) as running:
        running.create(OFFSETS_TOPIC, [OTTLA, APACHE], **{"cleanup.policy": "compact"})
        running.create("orders", [APACHE, OTTLA])
        for kind in KINDS:
            running.create(f"through-{kind}", *([[OTTLA, APACHE], [APACHE, OTTLA]] * (PARTITIONS // 2)))
        yield running


@pytest.fixture(autouse=True)
def _revived(cluster: MixedCluster) -> None:
    """Who was killed in a test that failed is back for the next, and may lead."""
    cluster.revive()
    cluster.wait_for_isr(OFFSETS_TOPIC, 2)


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


def ottla_coordinates(cluster: MixedCluster) -> bool:
    """It is the preferred leader; whoever asks for that may find yesterday's controller first."""
    if coordinator(cluster) != OTTLA:
        with suppress(AssertionError, KafkaException):
            cluster.prefer((OFFSETS_TOPIC, 0))
    return coordinator(cluster) == OTTLA


def test_members_go_on_and_offsets_stay_when_the_coordinator_changes_kind(cluster: MixedCluster) -> None:
    topic, group = "orders", "wanderers"
    wait_until(lambda: ottla_coordinates(cluster), "Ottla coordinates", every=0.5)
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
    description = run_main(
        GROUPS_TOOL, "--bootstrap-server", cluster.bootstrap, *PATIENCE, "--describe", "--group", group
    ).stdout
    member.close()
    cluster.start_again(APACHE)

    assert at_apache < 0, "a group that never committed has no offset"
    rows = [line.split()[:4] for line in description.splitlines()]
    assert [group, topic, "0", "30"] in rows, description


@pytest.mark.full("starts Apache's brokers again")
@pytest.mark.parametrize(
    "kind",
    ["librdkafka", *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS if kind != "librdkafka")],
)
def test_a_group_reads_on_through_kills_of_either_kind_of_coordinator(
    cluster: MixedCluster, kind: str, tmp_path: Path
) -> None:
    topic = f"through-{kind}"
    chosen = KINDS[kind]
    drill = Drill(cluster.bootstrap, topic, f"g-{topic}", chosen, chosen.strategies[-1], tmp_path)
    try:
        drill.join(2)
        drill.settled(PARTITIONS)
        for _ in range(2):
            victim = coordinator(cluster)
            cluster.kill(victim)
            wait_until(lambda old=victim: coordinator(cluster) not in (old, -1), "the other kind coordinates")
            drill.settled(PARTITIONS)
            drill.progresses()
            cluster.start_again(victim)
            cluster.wait_for_isr(OFFSETS_TOPIC, 2)
            cluster.wait_for_isr(topic, 2)
            drill.hears()
        drill.finish()
    finally:
        drill.close()
