"""Offsets by timestamp, asked of each partition's leader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, ask
from ottla.client.errors import BrokerError, ClientError, TimedOut
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER, TopicPartition
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """The first offset at or after a time; -1 if there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


def list_offsets(
    engine: Engine,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = 0,
    timeout_ms: int | None = None,
) -> Operation[dict[TopicPartition, FoundOffset]]:
    """The offset for a timestamp (or ``LATEST``, ``EARLIEST``, ``MAX_TIMESTAMP``) of each partition."""
    limit_ms = engine.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
    deadline_ms = engine.now_ms + limit_ms
    found: dict[TopicPartition, FoundOffset] = {}
    engine.want_topics(*(partition.topic for partition in timestamps))
    cause: ClientError | None = None
    attempts = 0
    while missing := [partition for partition in timestamps if partition not in found]:
        leaders = by_leader(engine, missing)
        tasks = [
            engine.spawn(ask_leader(leader, {p: timestamps[p] for p in partitions}, isolation_level))
            for leader, partitions in leaders.items()
        ]
        for task in tasks:
            try:
                rows = yield from engine.join(task)
            except ClientError as error:
                cause = only_retriable(error)
            else:
                cause = _take(rows, found) or cause
        if len(found) == len(timestamps):
            break
        cause = cause or why_unknown(engine, missing)
        attempts += 1
        yield from engine.pause(attempts, deadline_ms)
        if not (yield from engine.refresh(deadline_ms)):
            raise TimedOut("ListOffsets", limit_ms, cause or engine.metadata_error)
    return found


def by_leader(engine: Engine, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """The partitions whose leader is known, by that leader."""
    found: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = engine.metadata.leader_of(partition)
        if leader is not None:
            found.setdefault(leader, []).append(partition)
    return found


def ask_leader(
    leader: int, timestamps: Mapping[TopicPartition, int], isolation_level: int
) -> Operation[dict[TopicPartition, ListOffsetsPartitionResponse]]:
    """One leader's rows for its partitions, errors included."""
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, timestamp in timestamps.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        row = ListOffsetsPartition(partition_index=partition.partition, timestamp=timestamp)
        topic.partitions.append(row)
    request = ListOffsetsRequest(
        replica_id=CONSUMER, isolation_level=isolation_level, topics=list(topics.values())
    )
    response = yield from ask(leader, request, ListOffsetsResponse)
    return {TopicPartition(t.name, row.partition_index): row for t in response.topics for row in t.partitions}


def _take(
    rows: Mapping[TopicPartition, ListOffsetsPartitionResponse], found: dict[TopicPartition, FoundOffset]
) -> ClientError | None:
    """Add the offsets to ``found``; return the last retriable error, raise any other."""
    cause: ClientError | None = None
    for partition, row in rows.items():
        if row.error_code == ErrorCode.NONE:
            found[partition] = FoundOffset(row.offset, row.timestamp, row.leader_epoch)
        else:
            cause = only_retriable(BrokerError(row.error_code, str(partition)))
    return cause


def only_retriable(error: ClientError) -> ClientError:
    """The error, if trying again may help; else it is raised."""
    if not error.is_retriable:
        raise error
    return error


def why_unknown(engine: Engine, partitions: Iterable[TopicPartition]) -> ClientError | None:
    """Why a partition has no known leader; raised if the error is not retriable."""
    for partition in partitions:
        topic = engine.metadata.topics.get(partition.topic)
        if topic is None:
            return engine.metadata_error
        if topic.error_code:
            return only_retriable(BrokerError(topic.error_code, partition.topic))
        if partition.partition not in topic.partitions:
            return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(partition))
    return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE)
