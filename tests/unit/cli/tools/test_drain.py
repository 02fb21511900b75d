"""Where a drained broker's replicas go."""

from __future__ import annotations

import pytest

from ottla.cli.shared import connection
from ottla.cli.tools.reassign import progress, reassignment
from ottla.client.admin.cluster import list_partition_reassignments
from ottla.client.admin.topics import describe_topics
from ottla.insight.plan import CannotMove, moves_away_from, plan_drain
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment
from support.client.answering_client import AnsweringClient, described
from support.processes.commands import run_here


def partitions(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): held for number, held in enumerate(replicas)}


def test_the_emptiest_broker_takes_the_place_and_the_order_stays() -> None:
    plan = plan_drain(partitions((0, 1), (1, 0), (1, 2)), 0, [0, 1, 2, 3])

    assert plan == {TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (1, 2)}


def test_leaderships_are_spread_over_those_that_stay() -> None:
    plan = plan_drain(partitions(*[(0, 1)] * 6), 0, [0, 1, 2, 3])

    preferred = [replicas[0] for replicas in plan.values()]
    assert {number: preferred.count(number) for number in (2, 3)} == {2: 3, 3: 3}


def test_a_partition_on_all_other_brokers_is_refused_and_nothing_is_planned() -> None:
    refused = plan_drain(partitions((0, 1, 2)), 0, [0, 1, 2])

    assert isinstance(refused, CannotMove)
    assert "t-0 has 3 replicas and there are only 2 other live brokers" in refused.why


def test_a_dead_broker_can_be_drained() -> None:
    assert plan_drain(partitions((0, 1)), 0, [1, 2]) == {TopicPartition("t", 0): (2, 1)}


def test_what_an_earlier_call_began_is_known_by_what_leaves_the_broker() -> None:
    away, other = TopicPartition("t", 0), TopicPartition("t", 1)
    under_way = {
        away: OngoingPartitionReassignment(
            partition_index=0, replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(2,)
        ),
        other: OngoingPartitionReassignment(
            partition_index=1, replicas=(2, 1, 0), adding_replicas=(2,), removing_replicas=(0,)
        ),
    }

    assert moves_away_from(2, under_way) == {away: (3, 1)}


@pytest.mark.parametrize(
    ("after", "code", "words"),
    [
        ((1, 2), 0, "broker 0 holds no replicas any more"),
        ((0, 1), 1, "broker 0 still holds t-0: a move was cancelled"),
    ],
)
def test_a_broker_counts_as_empty_only_when_it_is(
    monkeypatch: pytest.MonkeyPatch, after: tuple[int, ...], code: int, words: str
) -> None:
    topics = described({"t": [1]})
    topics.topics[0].partitions[0].replica_nodes = (0, 1)

    def finish(*_arguments: object) -> None:
        topics.topics[0].partitions[0].replica_nodes = after

    client = AnsweringClient({list_partition_reassignments: {}, describe_topics: topics})
    monkeypatch.setattr(connection, "connected", client.connected)
    monkeypatch.setattr(reassignment, "execute", lambda *_arguments, **_options: None)
    monkeypatch.setattr(reassignment, "verify", lambda *_arguments, **_options: None)
    monkeypatch.setattr(progress, "wait", finish)

    ran = run_here("drain", "0")

    assert (ran.exit_code, words in ran.stdout + ran.stderr) == (code, True), ran


def test_no_bytes_a_second_are_refused() -> None:
    assert run_here("drain", "0", "--throttle", "0").exit_code == 2
