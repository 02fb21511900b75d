"""Kafka's own command-line tools, one after the other in a single JVM: a run costs a tenth of a second."""

from __future__ import annotations

import json

from support.apache import ToolRun
from support.java_harness import java_harness

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
    asked = {"main": CLASSES[command], "args": args, "stdin": stdin}
    answer = json.loads(java_harness("ToolOracle").call("run", json.dumps(asked).encode()))
    return ToolRun(answer["exit_code"], answer["stdout"], answer["stderr"])
