"""Which replicas a throttle of ``reassign-partitions`` names, and who is told to lift it."""

from __future__ import annotations

import pytest

from ottla.cli.tools.reassign.reassignment import execute
from ottla.client.admin.cluster import alter_partition_reassignments, list_partition_reassignments
from ottla.client.admin.configs import ConfigOperation, ResourceType, alter_configs
from ottla.client.admin.topics import describe_topics
from ottla.insight.moving import throttled_moves
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment
from support.client.answering_client import AnsweringClient, described

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MOVING = OngoingPartitionReassignment(
    partition_index=0, replicas=(2, 0), adding_replicas=(2,), removing_replicas=(0,)
)


def test_replicas_on_the_move_fetch_and_only_the_old_ones_send() -> None:
    """The metadata name the new holders of a moving partition from the first moment on."""
    assert throttled_moves({T0: (2,)}, {T0: (2, 0)}, {T0: MOVING}) == {T0: ((0,), (2,))}


def test_another_target_for_a_moving_partition() -> None:
    assert throttled_moves({T0: (1,)}, {T0: (2, 0)}, {T0: MOVING}) == {T0: ((0,), (1,))}


def test_moves_that_go_on_keep_their_throttle_beside_new_ones() -> None:
    moves = throttled_moves({T1: (2,)}, {T0: (2, 0), T1: (1,)}, {T0: MOVING})

    assert moves == {T0: ((0,), (2,)), T1: ((1,), (2,))}


def test_the_throttle_of_moves_under_way_is_really_set() -> None:
    topics = described({"t": [0]})
    topics.topics[0].partitions[0].replica_nodes = (2, 0)
    client = AnsweringClient(
        {
            list_partition_reassignments: {T0: MOVING},
            describe_topics: topics,
            alter_configs: (),
            alter_partition_reassignments: {},
        }
    )

    execute(client.as_client, {T0: (2,)}, 1000, additional=True, preserve=False)

    [rates], [replicas] = client.arguments_of(alter_configs)
    assert {name for _, name in rates} == {"0", "2"}
    assert replicas == {
        (ResourceType.TOPIC, "t"): {
            "leader.replication.throttled.replicas": (ConfigOperation.SET, "0:0"),
            "follower.replication.throttled.replicas": (ConfigOperation.SET, "0:2"),
        }
    }


@pytest.mark.parametrize(
    ("under_way", "is_awaited", "is_told"), [({}, False, True), ({}, True, False), ({T0: MOVING}, True, True)]
)
def test_whoever_does_not_wait_is_told_to_lift_the_throttle(
    capsys: pytest.CaptureFixture[str],
    under_way: dict[TopicPartition, OngoingPartitionReassignment],
    is_awaited: bool,
    is_told: bool,
) -> None:
    """Nor is it lifted at the end of a wait while other moves go on."""
    topics = described({"t": [0, 0]})
    for row in topics.topics[0].partitions:
        row.replica_nodes = (0,)
    client = AnsweringClient(
        {
            list_partition_reassignments: under_way,
            describe_topics: topics,
            alter_configs: (),
            alter_partition_reassignments: {},
        }
    )

    execute(client.as_client, {T1: (2,)}, 1000, additional=True, preserve=False, is_awaited=is_awaited)

    assert ("You must run --verify periodically" in capsys.readouterr().out) == is_told
