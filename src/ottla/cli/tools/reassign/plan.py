"""Plans of reassignments as JSON, and the cluster's present one."""

from pathlib import Path

from ottla.cli.shared.json_files import partition_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.insight.plan import Plan
from ottla.model.ids import TopicPartition


def read_plan(path: Path) -> Plan:
    """A plan file; what Kafka's tool would refuse is refused here."""
    plan: Plan = {}
    for name, row in partition_rows(path):
        replicas = row.get("replicas")
        if not isinstance(replicas, list) or not replicas or not all(type(r) is int for r in replicas):
            raise CommandRefused(f"{path}: {name} has no list of replicas")
        if len(set(replicas)) != len(replicas):
            raise CommandRefused(f"{path}: {name} names a replica twice")
        plan[name] = tuple(replicas)
    return plan


def present_plan(client: Client, topics: set[str]) -> Plan:
    """Who holds the partitions of these topics now; a topic that is not there is refused."""
    plan: Plan = {}
    for row in client.run(describe_topics, sorted(topics)).topics:
        if row.error_code or row.name is None:
            raise CommandRefused(f"there is no topic {row.name}; see `ottla topics --list`")
        for partition in row.partitions:
            plan[TopicPartition(row.name, partition.partition_index)] = partition.replica_nodes
    return plan
