"""``describe`` and ``explain`` through scripted histories: what is told is what was done."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.launch.cluster import Cluster
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.testing.cluster import ClusterUnderTest
from support.processes.commands import Run
from support.processes.deaths import die
from support.running.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def whole_again(cluster: Cluster) -> Iterator[None]:
    """A test that fails on its way leaves no dead broker to the next."""
    yield
    ClusterUnderTest(cluster).restore()


def explained(done: Run, partition: str) -> dict[str, Any]:
    story: dict[str, Any] = json.loads(done("explain", partition, "--json").stdout)
    return story


def rules(story: dict[str, Any]) -> list[str]:
    """The rules by which the leader changed, oldest first."""
    return [
        row["rule"]
        for row in story["history"]
        if row["kind"] == "decision" and (row["before"] or {}).get("leader") != row["after"]["leader"]
    ]


def told(done: Run, partition: str, wanted: list[str]) -> dict[str, Any]:
    """The story as soon as it holds these rules."""
    story: dict[str, Any] = {}

    def is_told() -> bool:
        nonlocal story
        story = explained(done, partition)
        # Brokers hear of an election one after the other: the leader is what one of them says.
        return rules(story) == wanted and story["leader"] == last(story)["after"]["leader"]

    wait_until(is_told, lambda: f"{partition}: {wanted}, not {rules(story)}, led by {story['leader']}", 60)
    return story


def last(story: dict[str, Any]) -> dict[str, Any]:
    """The last decision that moved the leader."""
    return [row for row in story["history"] if row["kind"] == "decision" and row["rule"] in rules(story)][-1]


def governing(cluster: Cluster) -> int:
    """The controller, once a broker names one."""
    found = wait_until(lambda: {cluster.controller} - {None}, "somebody governs")
    return int(found.pop() or 0)


def create(done: Run, assignment: str, *config: str) -> str:
    """A topic of one partition, by its partition's name."""
    topic = f"told{next(NUMBERS)}"
    done("topics", "--create", "--topic", topic, "--replica-assignment", assignment, *config)
    told(done, f"{topic}-0", ["new partition"])
    return f"{topic}-0"


def in_sync(done: Run, partition: str, *brokers: int) -> None:
    wait_until(
        lambda: explained(done, partition)["isr"] == list(brokers), f"{partition} in sync {brokers}", 60
    )


def move(done: Run, directory: Path, partition: str, *replicas: int) -> None:
    topic, _, index = partition.rpartition("-")
    plan = directory / "plan.json"
    row = {"topic": topic, "partition": int(index), "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    done("reassign-partitions", "--execute", "--reassignment-json-file", str(plan), "--wait")


def elect_preferred(done: Run, partition: str) -> None:
    topic, _, index = partition.rpartition("-")
    done("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", index)


def test_a_crash_and_the_way_back_are_told_with_rule_and_cause(cluster: Cluster, done: Run) -> None:
    partition = create(done, "1:2")

    process = cluster.brokers[1].pid
    die(cluster, 1)
    cluster.await_members(frozenset({0, 2}))
    dead = told(done, partition, ["new partition", "offline partition"])
    words = done("explain", partition).stdout
    screen = json.loads(done("describe", "--json").stdout)

    cluster.start_broker(1)
    in_sync(done, partition, 2, 1)
    elect_preferred(done, partition)
    back = told(done, partition, ["new partition", "offline partition", "preferred replica"])

    assert dead["leader"] == 2
    assert dead["what_if"]["1"] == "is not alive already"
    assert dead["what_if"]["2"].startswith("the partition would be offline")
    assert dead["preferred"] == "the preferred leader 1 is not alive"
    assert f"process {process} ended by signal 9; its guard closed the session" in words
    assert dead["is_told"]
    assert "rule: leader offline: the first replica that is online and in sync" in words
    assert "candidates: 1 offline, in sync; 2 online, in sync" in words
    assert [row["address"] is None for row in screen["brokers"]] == [False, True, False]
    assert partition in screen["troubles"]
    assert (back["leader"], back["is_preferred"]) == (1, True)
    assert back["what_if"]["1"] == "broker 2 would lead, in sync 2"


def test_a_move_and_a_clean_stop_are_told_with_rule_and_cause(
    cluster: Cluster, done: Run, tmp_path: Path
) -> None:
    moved, stopped = create(done, "1:0"), create(done, "2:1")

    move(done, tmp_path, moved, 2, 0)
    there = told(done, moved, ["new partition", "reassigned partition"])
    cluster.brokers[2].stop()
    left = told(done, stopped, ["new partition", "controlled shutdown"])
    cluster.start_broker(2)
    in_sync(done, stopped, 1, 2)

    assert (there["leader"], there["replicas"]) == (2, [2, 0])
    assert last(there)["after"]["leader"] == 2
    assert (left["leader"], last(left)["before"]["leader"]) == (1, 2)
    assert "broker 2" in last(left)["cause"]


def test_a_controller_that_stops_tells_what_it_decided_last(
    cluster: Cluster, done: Run, tmp_path: Path
) -> None:
    controller = governing(cluster)
    other, third = (number for number in range(3) if number != controller)
    partition = create(done, f"{controller}:{other}")
    move(done, tmp_path, f"{DECISIONS_TOPIC}-0", controller, other, third)
    elect_preferred(done, f"{DECISIONS_TOPIC}-0")

    cluster.brokers[controller].stop()

    left = told(done, partition, ["new partition", "controlled shutdown"])
    assert (left["leader"], last(left)["controller"]) == (other, controller)


def test_an_unclean_election_is_told_with_what_was_lost(cluster: Cluster, done: Run) -> None:
    partition = create(done, "2:0", "--config", "unclean.leader.election.enable=true")
    topic = partition.removesuffix("-0")
    acks = ("--request-required-acks", "1")

    done("console-producer", "--topic", topic, "--request-required-acks", "all", stdin=b"held by both\n")
    die(cluster, 0)
    in_sync(done, partition, 2)
    done("console-producer", "--topic", topic, *acks, stdin=b"held by one\nheld by one\n")
    die(cluster, 2)
    wait_until(lambda: explained(done, partition)["leader"] == -1, "nobody leads", 60)
    cluster.start_broker(0)
    wait_until(lambda: "unclean" in rules(explained(done, partition))[-1], "elected uncleanly", 60)
    cluster.start_broker(2)
    in_sync(done, partition, 0, 2)
    wait_until(lambda: "COMPLETE" in done("explain", partition).stdout, "the loss is known", 60)
    words = done("explain", partition).stdout

    assert explained(done, partition)["leader"] == 0
    assert "rule: UNCLEAN" in words
    assert "s without a leader" in words
    assert "LOSS RECEIPT" in words
    assert "broker 2 came back and cut offsets 1 to 2" in words


def test_a_controller_that_dies_with_its_partitions_leaves_the_story_to_the_next(
    cluster: Cluster, done: Run
) -> None:
    controller = governing(cluster)
    others = [number for number in range(3) if number != controller]
    partition = create(done, f"{controller}:{others[0]}")

    process = cluster.brokers[controller].pid
    die(cluster, controller)
    story = told(done, partition, ["new partition", "offline partition"])
    cluster.start_broker(controller)
    in_sync(done, partition, others[0], controller)

    before, after = story["history"][0], last(story)
    assert before["controller"] == controller
    assert after["controller"] in others
    assert after["controller_epoch"] == before["controller_epoch"] + 1
    assert after["after"]["leader"] == others[0]
    found = f"took office and found broker {controller} not alive: process {process} ended by signal 9"
    assert found in after["cause"]
    assert f"{controller} offline, in sync" in done("explain", partition).stdout


def test_a_partition_that_is_not_there_is_one_sentence(ottla: Run) -> None:
    missing = ottla("explain", "nowhere-0")
    wrong = ottla("explain", "nowhere")

    assert (missing.exit_code, wrong.exit_code) == (1, 2)
    assert missing.stderr == "ottla: there is no partition nowhere-0; see `ottla topics --describe`\n"


def test_watch_prints_the_screen_once_into_a_pipe(cluster: Cluster, done: Run) -> None:
    ran = done("watch", "--times", "2", "--every", "0.2", "--zookeeper", cluster.zookeeper.connect)

    assert re.fullmatch(r"cluster \S+   controller: broker \d, epoch \d+", ran.lines[0])
    assert sum(line.startswith("BROKER") for line in ran.lines) == 1
