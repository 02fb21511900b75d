"""Leaders of what a group reads, and of its offsets, move while it reads: nothing is lost or undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.client.admin.cluster import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from support.members.drilling import PARTITIONS, a_drill
from support.members.programs import KINDS
from support.running.waiting import wait_until

OFFSETS_TOPIC = "__consumer_offsets"


def move_leaders(client: Client, topics: list[str]) -> None:
    """Every partition is led by another replica than before."""
    answer = client.run(describe_topics, topics)
    rows = {
        TopicPartition(topic.name, row.partition_index): row
        for topic in answer.topics
        for row in topic.partitions
    }
    targets: dict[TopicPartition, tuple[int, ...] | None] = {
        partition: (*row.replica_nodes[1:], row.replica_nodes[0]) for partition, row in rows.items()
    }
    codes = {row.error_code for row in client.run(alter_partition_reassignments, targets).values()}
    wait_until(lambda: not client.run(list_partition_reassignments), "the reassignment is over")
    elected = client.run(elect_leaders, list(targets))

    assert codes == {0}
    assert {row.error_code for row in elected.values()} <= {0, 84}, "elected, or led so already"


@pytest.mark.parametrize("kind", ["librdkafka", "franz-go"])
def test_a_group_reads_on_while_all_leaders_move(
    cluster: Cluster, kind: str, tmp_path: Path, long_form: bool
) -> None:
    with (
        a_drill(cluster, KINDS[kind], KINDS[kind].strategies[-1], tmp_path) as drill,
        Client(cluster.bootstrap_servers) as client,
    ):
        topic = drill.group.removeprefix("g-")
        drill.join(2)
        drill.settled(PARTITIONS)
        for _ in range(20 if long_form else 3):
            move_leaders(client, [topic, OFFSETS_TOPIC])
            drill.progresses()
        drill.join()
        for _ in range(3):
            move_leaders(client, [OFFSETS_TOPIC])
        drill.settled(PARTITIONS)
        drill.finish()
