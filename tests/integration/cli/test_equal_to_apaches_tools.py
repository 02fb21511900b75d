"""Each tool beside Apache's own, on the same cluster: the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.launch.cluster import Cluster
from support.apache import run_tool
from support.commands import Run

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture(scope="module")
def prepared(cluster: Cluster, done: Run) -> Cluster:
    """A topic with settings and records, and a group that has read some of them."""
    done(
        "topics", "--create", "--topic", "com.pared", "--replica-assignment", "0:1,1:2,2:0",
        "--config", "retention.ms=7000000",
    )  # fmt: skip
    for number in range(3):
        done("console-producer", "--topic", "com.pared", stdin=b"a\nb\nc\n"[: 2 * number + 2])
    done(
        "console-consumer",
        "--topic",
        "com.pared",
        "--from-beginning",
        "--group",
        "both",
        "--timeout-ms",
        "1500",
    )
    return cluster


def apache(cluster: Cluster, tool: str, *args: str) -> list[str]:
    """The lines of Apache's tool, sorted: it prints many of them in no order."""
    ran = run_tool(tool, "--bootstrap-server", cluster.bootstrap_servers, *args)
    assert ran.exit_code == 0, ran.stderr
    return sorted(line.rstrip() for line in ran.stdout.splitlines() if line.strip())


@pytest.mark.parametrize(
    ("command", "tool", "args"),
    [
        ("topics", TOPICS, ("--describe", "--topic", "com.pared")),
        ("topics", TOPICS, ("--list", "--exclude-internal")),
        ("topics", TOPICS, ("--describe", "--topics-with-overrides", "--topic", "com.*")),
        ("get-offsets", OFFSETS, ("--topic", "com.pared")),
        ("get-offsets", OFFSETS, ("--topic-partitions", "com.pared:1-,com.*:0", "--time", "-2")),
        ("consumer-groups", GROUPS, ("--describe", "--group", "both")),
        ("consumer-groups", GROUPS, ("--list", "--state")),
        (
            "consumer-groups",
            GROUPS,
            ("--describe", "--group", "both", "--state"),
        ),
        (
            "consumer-groups",
            GROUPS,
            ("--describe", "--group", "both", "--members"),
        ),
        (
            "leader-election",
            f"{TOOLS}.LeaderElectionCommand",
            ("--election-type", "PREFERRED", "--topic", "com.pared", "--partition", "1"),
        ),
        ("configs", CONFIGS, ("--describe", "--entity-type", "topics", "--entity-name", "com.pared")),
        ("configs", CONFIGS, ("--describe", "--topic", "com.pared", "--all")),
        ("reassign-partitions", f"{TOOLS}.reassign.ReassignPartitionsCommand", ("--list",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.rpartition(".")[2],
)  # fmt: skip
def test_the_lines_are_those_of_apaches_tool(
    prepared: Cluster, done: Run, command: str, tool: str, args: tuple[str, ...]
) -> None:
    ours = sorted(done(command, *args).lines)

    assert ours == apache(prepared, tool, *args)
    assert ours


def test_api_versions_are_those_that_apaches_tool_reads(prepared: Cluster, done: Run) -> None:
    ours = done("broker-api-versions").lines
    theirs = apache(prepared, "kafka.admin.BrokerApiVersionsCommand")

    spoken = sorted(line.rstrip(",") for line in ours if " to " in line)
    assert spoken == [line.rstrip(",") for line in theirs if " to " in line]
    assert sorted(line for line in ours if "->" in line) == [line for line in theirs if "->" in line]


def test_a_refused_election_fails_in_both(prepared: Cluster, ottla: Run) -> None:
    args = ("--election-type", "UNCLEAN", "--topic", "nowhere", "--partition", "0")

    ours = ottla("leader-election", *args)
    theirs = run_tool(
        f"{TOOLS}.LeaderElectionCommand", "--bootstrap-server", prepared.bootstrap_servers, *args
    )

    prefix = "Error completing leader election (UNCLEAN) for partition: nowhere-0: "
    assert (ours.exit_code, theirs.exit_code) == (1, 1)
    assert ours.lines[0].startswith(prefix)
    assert theirs.stdout.startswith(prefix)


def test_a_plan_of_ours_is_moved_by_apaches_tool_and_the_other_way_round(
    prepared: Cluster, done: Run, tmp_path: Path
) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics": [{"topic": "com.pared"}], "version": 1}')
    generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "0,1,2")
    tool = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    plan = tmp_path / "plan.json"

    plan.write_text(done("reassign-partitions", *generate).lines[-1])
    moved = apache(prepared, tool, "--execute", "--reassignment-json-file", str(plan))
    done("reassign-partitions", "--verify", "--reassignment-json-file", str(plan), "--wait")
    seen = apache(prepared, tool, "--verify", "--reassignment-json-file", str(plan))

    assert any(line.startswith("Successfully started partition reassignment") for line in moved)
    assert sum(line.endswith("is completed.") for line in seen) == 3
    assert (
        sorted(done("reassign-partitions", "--verify", "--reassignment-json-file", str(plan)).lines) == seen
    )
