"""The cluster: its brokers, elections, reassignments, log directories."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.asking import ask_any, ask_controller, ask_target, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.model.ids import TopicPartition
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.apis.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ottla.wire.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    TopicPartitions,
)
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)

PREFERRED, UNCLEAN = 0, 1
ADMIN_TIMEOUT_MS = 30_000


def describe_cluster(engine: Engine, timeout_ms: int | None = None) -> Operation[DescribeClusterResponse]:
    """The cluster's id, its controller and its brokers."""
    response = yield from ask_any(engine, DescribeClusterRequest(), DescribeClusterResponse, timeout_ms)
    raise_for(response.error_code, response.error_message)
    return response


def elect_leaders(
    engine: Engine,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    election_type: int = PREFERRED,
    timeout_ms: int | None = None,
) -> Operation[dict[TopicPartition, PartitionResult]]:
    """Elect the leaders of these partitions, or of all; one row per partition that needed an election."""
    topics = None if partitions is None else _grouped(partitions)
    rows = None if topics is None else [TopicPartitions(topic=t, partitions=p) for t, p in topics.items()]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=rows, timeout_ms=ADMIN_TIMEOUT_MS
    )

    def codes(response: ElectLeadersResponse) -> list[int]:
        results = [row.error_code for t in response.replica_election_results for row in t.partition_result]
        return [response.error_code, *results]

    response = yield from ask_controller(engine, request, ElectLeadersResponse, codes, timeout_ms)
    raise_for(response.error_code)
    return {
        TopicPartition(topic.topic, row.partition_id): row
        for topic in response.replica_election_results
        for row in topic.partition_result
    }


def alter_partition_reassignments(
    engine: Engine, targets: Mapping[TopicPartition, tuple[int, ...] | None], timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, ReassignablePartitionResponse]]:
    """Move partitions to these replicas, or (``None``) cancel their move; one row each."""
    topics: dict[str, ReassignableTopic] = {}
    for partition, replicas in targets.items():
        topic = topics.setdefault(partition.topic, ReassignableTopic(name=partition.topic))
        topic.partitions.append(ReassignablePartition(partition_index=partition.partition, replicas=replicas))
    request = AlterPartitionReassignmentsRequest(timeout_ms=ADMIN_TIMEOUT_MS, topics=list(topics.values()))
    response = yield from ask_controller(
        engine, request, AlterPartitionReassignmentsResponse, lambda r: [r.error_code], timeout_ms
    )
    raise_for(response.error_code, response.error_message)
    return {TopicPartition(t.name, r.partition_index): r for t in response.responses for r in t.partitions}


def list_partition_reassignments(
    engine: Engine, partitions: Iterable[TopicPartition] | None = None, timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, OngoingPartitionReassignment]]:
    """The reassignments in progress among these partitions, or among all."""
    topics = None if partitions is None else _grouped(partitions)
    rows = (
        None
        if topics is None
        else [ListPartitionReassignmentsTopics(name=t, partition_indexes=p) for t, p in topics.items()]
    )
    request = ListPartitionReassignmentsRequest(timeout_ms=ADMIN_TIMEOUT_MS, topics=rows)
    response = yield from ask_controller(
        engine, request, ListPartitionReassignmentsResponse, lambda r: [r.error_code], timeout_ms
    )
    raise_for(response.error_code, response.error_message)
    return {TopicPartition(t.name, r.partition_index): r for t in response.topics for r in t.partitions}


def describe_log_dirs(
    engine: Engine,
    brokers: Iterable[int],
    partitions: Iterable[TopicPartition] | None = None,
    timeout_ms: int | None = None,
) -> Operation[dict[int, list[DescribeLogDirsResult]]]:
    """The contents of the log directories of these brokers."""
    topics = None if partitions is None else _grouped(partitions)
    rows = (
        None if topics is None else [DescribableLogDirTopic(topic=t, partitions=p) for t, p in topics.items()]
    )
    request = DescribeLogDirsRequest(topics=rows)
    tasks = {
        broker: engine.spawn(ask_target(engine, broker, request, DescribeLogDirsResponse, timeout_ms))
        for broker in brokers
    }
    results: dict[int, list[DescribeLogDirsResult]] = {}
    for broker, task in tasks.items():
        response = yield from engine.join(task)
        raise_for(response.error_code)
        results[broker] = response.results
    return results


def alter_replica_log_dirs(
    engine: Engine, moves: Mapping[int, Mapping[TopicPartition, str]], timeout_ms: int | None = None
) -> Operation[dict[tuple[TopicPartition, int], int]]:
    """Move replicas of these brokers to these directories; the error code of each replica."""
    tasks = {}
    for broker, wanted in moves.items():
        topics: dict[str, dict[str, AlterReplicaLogDirTopic]] = {}
        for partition, path in wanted.items():
            row = topics.setdefault(path, {}).setdefault(
                partition.topic, AlterReplicaLogDirTopic(name=partition.topic)
            )
            row.partitions = (*row.partitions, partition.partition)
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=list(rows.values())) for path, rows in topics.items()]
        )
        asking = ask_target(engine, broker, request, AlterReplicaLogDirsResponse, timeout_ms)
        tasks[broker] = engine.spawn(asking)
    codes: dict[tuple[TopicPartition, int], int] = {}
    for broker, task in tasks.items():
        response = yield from engine.join(task)
        for topic in response.results:
            for result in topic.partitions:
                codes[TopicPartition(topic.topic_name, result.partition_index), broker] = result.error_code
    return codes


def _grouped(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for partition in partitions:
        grouped[partition.topic] = (*grouped.get(partition.topic, ()), partition.partition)
    return grouped
