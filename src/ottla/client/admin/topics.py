"""Topics: list, describe, create and delete them, add partitions, delete records."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.asking import ask_any, ask_controller, hear_controller, know_brokers, until_done
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, ask
from ottla.client.errors import BrokerError, ConnectionLost
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_NOT_HEARD_OF = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
ADMIN_TIMEOUT_MS = 30_000
"""How long a broker may wait until the operation is done in the cluster."""


def describe_topics(
    engine: Engine, names: Iterable[str] | None = None, timeout_ms: int | None = None
) -> Operation[MetadataResponse]:
    """The metadata of these topics, or of all; no topic is created.

    A broker may not know a new topic yet, so the controller is asked before a topic counts as missing.
    """
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    if topics is None:
        return (yield from _ask_for_all(engine, request, timeout_ms))
    answer = yield from ask_any(engine, request, MetadataResponse, timeout_ms)
    if any(row.error_code in _NOT_HEARD_OF for row in answer.topics):
        second = yield from hear_controller(engine, answer.controller_id, request, MetadataResponse)
        return answer if second is None else second
    return answer


def _ask_for_all(
    engine: Engine, request: MetadataRequest, timeout_ms: int | None
) -> Operation[MetadataResponse]:
    """A list of all topics does not show that one is missing, so the controller is asked first."""
    yield from know_brokers(engine, timeout_ms)
    controller = engine.metadata.controller_id
    answer = yield from hear_controller(engine, controller, request, MetadataResponse)
    if answer is None:
        answer = yield from ask_any(engine, request, MetadataResponse, timeout_ms)
    return answer


def a_topic(
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignments: Mapping[int, Iterable[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """A topic to be created: with counts (-1: the brokers' default), or with given assignments."""
    placed = [
        CreatableReplicaAssignment(partition_index=partition, broker_ids=tuple(brokers))
        for partition, brokers in (assignments or {}).items()
    ]
    return CreatableTopic(
        name=name,
        num_partitions=-1 if placed else partitions,
        replication_factor=-1 if placed else replication_factor,
        assignments=placed,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def create_topics(
    engine: Engine,
    topics: list[CreatableTopic],
    *,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Operation[list[CreatableTopicResult]]:
    """Create topics; one row each."""
    request = CreateTopicsRequest(topics=topics, timeout_ms=ADMIN_TIMEOUT_MS, validate_only=validate_only)
    response = yield from ask_controller(
        engine, request, CreateTopicsResponse, lambda r: [row.error_code for row in r.topics], timeout_ms
    )
    return response.topics


def delete_topics(
    engine: Engine, names: Iterable[str], timeout_ms: int | None = None
) -> Operation[list[DeletableTopicResult]]:
    """Delete topics by name; one row each."""
    topics = [DeleteTopicState(name=name) for name in names]
    request = DeleteTopicsRequest(topics=topics, timeout_ms=ADMIN_TIMEOUT_MS)
    response = yield from ask_controller(
        engine, request, DeleteTopicsResponse, lambda r: [row.error_code for row in r.responses], timeout_ms
    )
    return response.responses


def create_partitions(
    engine: Engine,
    counts: Mapping[str, int],
    *,
    assignments: Mapping[str, list[tuple[int, ...]]] | None = None,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Operation[list[CreatePartitionsTopicResult]]:
    """Add partitions up to these counts; one row per topic."""
    topics = []
    for name, count in counts.items():
        placed = (assignments or {}).get(name)
        rows = None if placed is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in placed]
        topics.append(CreatePartitionsTopic(name=name, count=count, assignments=rows))
    request = CreatePartitionsRequest(topics=topics, timeout_ms=ADMIN_TIMEOUT_MS, validate_only=validate_only)
    response = yield from ask_controller(
        engine, request, CreatePartitionsResponse, lambda r: [row.error_code for row in r.results], timeout_ms
    )
    return response.results


def delete_records(
    engine: Engine, before: Mapping[TopicPartition, int], timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, DeleteRecordsPartitionResult]]:
    """Delete all records before an offset (-1: the high watermark); one row per partition."""
    engine.want_topics(*{partition.topic for partition in before})
    done: dict[TopicPartition, DeleteRecordsPartitionResult] = {}

    def attempt(_: int) -> Operation[None]:
        missing = [partition for partition in before if partition not in done]
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in missing:
            leader = engine.metadata.leader_of(partition)
            if leader is None:
                raise ConnectionLost(f"the leader of {partition} is not known")
            by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            rows = yield from _delete_records_at(leader, {p: before[p] for p in partitions})
            done.update({p: row for p, row in rows.items() if row.error_code not in _STALE})
        if len(done) < len(before):
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    yield from until_done(engine, "DeleteRecords", timeout_ms, attempt)
    return done


_STALE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})


def _delete_records_at(
    leader: int, before: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, DeleteRecordsPartitionResult]]:
    topics: dict[str, DeleteRecordsTopic] = {}
    for partition, offset in before.items():
        topic = topics.setdefault(partition.topic, DeleteRecordsTopic(name=partition.topic))
        topic.partitions.append(DeleteRecordsPartition(partition_index=partition.partition, offset=offset))
    request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=ADMIN_TIMEOUT_MS)
    response = yield from ask(leader, request, DeleteRecordsResponse)
    return {TopicPartition(t.name, row.partition_index): row for t in response.topics for row in t.partitions}
