"""Where leader epochs ended, asked of each leader: how a reader learns that a log was cut (KIP-320)."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, ask
from ottla.client.errors import BrokerError, ClientError, TimedOut
from ottla.client.fetching.offsets import by_leader, only_retriable, why_unknown
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER, TopicPartition
from ottla.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The end of the newest epoch that the leader's log has, up to the one asked for; -1 if it has none."""

    leader_epoch: int
    end_offset: int


def ends_of_epochs(
    engine: Engine, epochs: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, EpochEnd]]:
    """For each partition where the epoch ended; one request to each leader.

    Leaders are asked as of the epoch that the metadata give: one that was replaced does not answer.
    """
    limit_ms = engine.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
    deadline_ms = engine.now_ms + limit_ms
    found: dict[TopicPartition, EpochEnd] = {}
    engine.want_topics(*(partition.topic for partition in epochs))
    cause: ClientError | None = None
    attempts = 0
    while missing := [partition for partition in epochs if partition not in found]:
        tasks = [
            engine.spawn(_ask_leader(engine, leader, {p: epochs[p] for p in partitions}))
            for leader, partitions in by_leader(engine, missing).items()
        ]
        for task in tasks:
            try:
                rows = yield from engine.join(task)
            except ClientError as error:
                cause = only_retriable(error)
            else:
                cause = _take(rows, found) or cause
        if len(found) == len(epochs):
            break
        cause = cause or why_unknown(engine, missing)
        attempts += 1
        yield from engine.pause(attempts, deadline_ms)
        if not (yield from engine.refresh(deadline_ms)):
            raise TimedOut("OffsetForLeaderEpoch", limit_ms, cause or engine.metadata_error)
    return found


def _ask_leader(
    engine: Engine, leader: int, epochs: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, EpochEndOffset]]:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition, epoch in epochs.items():
        info = engine.metadata.partition(partition)
        row = OffsetForLeaderPartition(
            partition=partition.partition,
            current_leader_epoch=-1 if info is None else info.leader_epoch,
            leader_epoch=epoch,
        )
        topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic, partitions=[]))
        topics[partition.topic].partitions.append(row)
    request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))
    response = yield from ask(leader, request, OffsetForLeaderEpochResponse)
    return {TopicPartition(t.topic, row.partition): row for t in response.topics for row in t.partitions}


def _take(
    rows: Mapping[TopicPartition, EpochEndOffset], found: dict[TopicPartition, EpochEnd]
) -> ClientError | None:
    """Add the answers to ``found``; return the last retriable error, raise any other."""
    cause: ClientError | None = None
    for partition, row in rows.items():
        if row.error_code == ErrorCode.NONE:
            found[partition] = EpochEnd(row.leader_epoch, row.end_offset)
        else:
            cause = only_retriable(BrokerError(row.error_code, str(partition)))
    return cause
