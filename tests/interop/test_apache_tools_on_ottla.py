"""The drill on five Ottla brokers, with Apache's own command-line tools."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters.mixed import MixedCluster, mixed_cluster
from support.processes.apache import ToolRun
from support.processes.apache_tools import run_main
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    kinds = dict.fromkeys(range(5), "ottla")
    with mixed_cluster(tmp_path_factory.mktemp("five"), kinds) as running:
        yield running


def tool(cluster: MixedCluster, name: str, *arguments: str) -> ToolRun:
    run = run_main(f"org.apache.kafka.tools.{name}", "--bootstrap-server", cluster.bootstrap, *arguments)
    assert run.exit_code == 0, run.stdout + run.stderr
    return run


def test_the_drill_with_kafkas_tools(cluster: MixedCluster):
    cluster.elect_controller(0)
    epoch = cluster.controller_epoch
    placed = "0:1:2,1:2:3,2:3:4,3:4:0,4:0:1"
    tool(cluster, "TopicCommand", "--create", "--topic", "orders", "--replica-assignment", placed)
    assert cluster.leaders("orders") == [0, 1, 2, 3, 4]

    cluster.kill(0, ends_session=False)
    wait_until(lambda: cluster.controller not in (-1, 0), "another is controller", 30)
    wait_until(lambda: 0 not in cluster.leaders("orders"), "the leaders have moved", 30)
    assert cluster.controller_epoch == epoch + 1
    assert cluster.leaders("orders") == [1, 1, 2, 3, 4]

    cluster.start_again(0)
    cluster.wait_for_isr("orders", 3)
    cluster.wait_for_isr("__ottla_decisions", 3)  # the tool asks for all partitions, and fails for one
    assert cluster.leaders("orders") == [1, 1, 2, 3, 4]

    tool(cluster, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert cluster.leaders("orders") == [0, 1, 2, 3, 4]


def test_a_reassignment_by_kafkas_tool_is_executed_and_verified(cluster: MixedCluster, tmp_path: Path):
    tool(cluster, "TopicCommand", "--create", "--topic", "moved", "--replica-assignment", "0:1")
    plan = tmp_path / "plan.json"
    row = {"topic": "moved", "partition": 0, "replicas": [3, 4, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    command = "reassign.ReassignPartitionsCommand"

    tool(cluster, command, "--execute", "--reassignment-json-file", str(plan))
    cluster.wait_moved("moved", 0, [3, 4, 2])
    verified = tool(cluster, command, "--verify", "--reassignment-json-file", str(plan))

    assert "Reassignment of partition moved-0 is completed." in verified.stdout
    tool(cluster, "TopicCommand", "--delete", "--topic", "moved")
    cluster.wait_gone("moved")
