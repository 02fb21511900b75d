"""plan: a reassignment that evens out leaders and bytes, with as few moves as possible.

Bytes are measured: every broker says how large its replicas are. The plan is the JSON that reassignment tools
take; nothing is moved here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.client.admin.cluster import describe_log_dirs
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking import Client
from ottla.model.ids import TopicPartition
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell

Assignment = dict[TopicPartition, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """``moves_max``: how many replicas may change their broker; leaders change within replicas for free."""

    bootstrap_servers: str
    file: str
    moves_max: int = 10


def run(spark: SparkSession, options: PlanOptions, tell: Tell) -> Report:
    """Measure, plan, write the file."""
    with Client(options.bootstrap_servers) as client:
        brokers, before, sizes = measure(client)
    tell(f"{len(before)} partitions on {len(brokers)} brokers")
    after = even_leaders(brokers, even_bytes(brokers, before, sizes, options.moves_max))
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


def bytes_on(broker: int, assignment: Assignment, sizes: dict[TopicPartition, int]) -> int:
    """The bytes of a broker's replicas."""
    return sum(sizes[partition] for partition, replicas in assignment.items() if broker in replicas)


def leaders_on(broker: int, assignment: Assignment) -> int:
    """How many partitions prefer a broker as leader."""
    return sum(replicas[0] == broker for replicas in assignment.values() if replicas)


def even_bytes(
    brokers: list[int], before: Assignment, sizes: dict[TopicPartition, int], moves_max: int
) -> Assignment:
    """Move, one after the other, the replica that brings the fullest and the emptiest broker nearest."""
    after = {partition: list(replicas) for partition, replicas in before.items()}
    load = {broker: bytes_on(broker, after, sizes) for broker in brokers}
    for _ in range(moves_max):
        best = max(_moves(brokers, after, sizes, load), key=lambda move: move[0], default=None)
        if best is None or best[0] <= 0:
            break
        _, partition, source, target = best
        after[partition][after[partition].index(source)] = target
        load[source] -= sizes[partition]
        load[target] += sizes[partition]
    return after


def _moves(
    brokers: list[int], assignment: Assignment, sizes: dict[TopicPartition, int], load: dict[int, int]
) -> Iterator[tuple[int, TopicPartition, int, int]]:
    """Every move off the fullest broker, with how much the sum of squares falls by it."""
    source = max(brokers, key=lambda broker: load[broker])
    for partition, replicas in assignment.items():
        if source not in replicas:
            continue
        size = sizes[partition]
        for target in brokers:
            if target not in replicas:
                yield 2 * size * (load[source] - load[target] - size), partition, source, target


def even_leaders(brokers: list[int], assignment: Assignment) -> Assignment:
    """Put another replica first where its broker leads at least two partitions fewer."""
    after = {partition: list(replicas) for partition, replicas in assignment.items()}
    count = {broker: leaders_on(broker, after) for broker in brokers}
    is_better = True
    while is_better:
        is_better = False
        for replicas in after.values():
            live = [broker for broker in replicas if broker in count]
            if not live or replicas[0] not in count:
                continue
            least = min(live, key=lambda broker: count[broker])
            if count[replicas[0]] - count[least] >= 2:
                count[replicas[0]] -= 1
                count[least] += 1
                replicas.remove(least)
                replicas.insert(0, least)
                is_better = True
    return after


def as_json(changed: Assignment) -> str:
    """Kafka's reassignment JSON."""
    rows = [{"topic": p.topic, "partition": p.partition, "replicas": r} for p, r in sorted(changed.items())]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"
