"""plan: a reassignment that evens out leaders and bytes, with as few moves as possible.

Bytes are measured: every broker says how large its replicas are. The plan is the JSON that reassignment tools
take; nothing is moved here.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.client.admin.cluster import describe_log_dirs
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking import Client
from ottla.model.ids import TopicPartition
from ottla.spark.jobs.balance import Assignment, balanced, bytes_on, leaders_on
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """``moves_max``: how many replicas may change their broker; that another leads is no move."""

    bootstrap_servers: str
    file: str
    moves_max: int = 10


def run(spark: SparkSession, options: PlanOptions, tell: Tell) -> Report:
    """Measure, plan, write the file."""
    with Client(options.bootstrap_servers) as client:
        brokers, before, sizes = measure(client)
    tell(f"{len(before)} partitions on {len(brokers)} brokers")
    after = balanced(brokers, before, sizes, options.moves_max)
    changed = {partition: replicas for partition, replicas in after.items() if replicas != before[partition]}
    Path(options.file).write_text(as_json(changed), encoding="utf-8")
    rows = [
        (
            broker,
            bytes_on(broker, before, sizes),
            bytes_on(broker, after, sizes),
            leaders_on(broker, before),
            leaders_on(broker, after),
        )
        for broker in brokers
    ]
    columns = ("broker", "bytes now", "bytes then", "leaders now", "leaders then")
    moves = sum(len(set(after[p]) - set(before[p])) for p in changed)
    headline = f"{len(changed)} partitions change, {moves} replicas move; the plan is in {options.file}"
    return Report(headline, [Table("brokers", columns, [*rows])])


def measure(client: Client) -> tuple[list[int], Assignment, dict[TopicPartition, int]]:
    """The live brokers, who has what, and how large each partition is (its largest replica)."""
    response = client.run(describe_topics, None)
    brokers = sorted(broker.node_id for broker in response.brokers)
    before = {
        TopicPartition(topic.name or "", row.partition_index): list(row.replica_nodes)
        for topic in response.topics
        for row in topic.partitions
    }
    sizes = dict.fromkeys(before, 0)
    for results in client.run(describe_log_dirs, brokers).values():
        for directory in results:
            for topic in directory.topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    sizes[partition] = max(sizes.get(partition, 0), row.partition_size)
    return brokers, before, sizes


def as_json(changed: Assignment) -> str:
    """Kafka's reassignment JSON."""
    rows = [{"topic": p.topic, "partition": p.partition, "replicas": r} for p, r in sorted(changed.items())]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"
