"""Kafka's own command-line tools, one after the other in a single JVM: a run costs a tenth of a second."""

from __future__ import annotations

import json
from pathlib import Path

from support.processes.apache import ToolRun
from support.processes.java_harness import java_harness
from support.processes.lab import old_kafka_jars

TOOL_SECONDS_MAX = 90
TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "topics": f"{TOOLS}.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "get-offsets": f"{TOOLS}.GetOffsetShell",
    "leader-election": f"{TOOLS}.LeaderElectionCommand",
    "reassign-partitions": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "log-dirs": f"{TOOLS}.LogDirsCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "cluster-id": f"{TOOLS}.ClusterTool",
    "perf produce": f"{TOOLS}.ProducerPerformance",
    "perf consume": f"{TOOLS}.ConsumerPerformance",
}
"""By the name of the ``ottla`` command of the same purpose."""


def run_apache(command: str, *args: str, stdin: str = "") -> ToolRun:
    """Run the tool that is the command's model."""
    return _run(CLASSES[command], args, stdin)


def run_main(main_class: str, *args: str, stdin: str = "") -> ToolRun:
    """Run a tool by its class."""
    return _run(main_class, args, stdin)


def run_old(main_class: str, *args: str) -> ToolRun:
    """Run a tool of the time when tools wrote to ZooKeeper, by its class in ``kafka.admin``."""
    return _run(f"kafka.admin.{main_class}", args, "", old_kafka_jars())


def _run(main_class: str, args: tuple[str, ...], stdin: str, jars: Path | None = None) -> ToolRun:
    asked = {"main": main_class, "args": args, "stdin": stdin}
    oracle = java_harness("ToolOracle", jars)
    answer = json.loads(oracle.call_within(TOOL_SECONDS_MAX, "run", json.dumps(asked).encode()))
    return ToolRun(answer["exit_code"], answer["stdout"], answer["stderr"])
