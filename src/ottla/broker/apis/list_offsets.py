"""ListOffsets 0-9: the ends of a log, or where a time begins in it."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.partition import Partition
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.storage.log import Log
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
CONSUMER, DEBUG_CONSUMER = -1, -2
OFFSET_NOT_AVAILABLE_SINCE = 5
READ_COMMITTED = 1


def handle(node: "Node", request: Request, body: ListOffsetsRequest) -> ListOffsetsResponse:
    """Answer each partition by itself; one named twice is refused twice, as of version 1."""
    named = Counter((topic.name, each.partition_index) for topic in body.topics for each in topic.partitions)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _refused(each, ErrorCode.INVALID_REQUEST)
                    if named[topic.name, each.partition_index] > 1 and request.api_version > 0
                    else _answer(node, request, body, topic.name, each)
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _old_style(
    partition: Partition, asked: ListOffsetsPartition, is_client: bool, now_ms: int
) -> ListOffsetsPartitionResponse:
    """Version 0 asks for the starts of segments before a time, newest first; a client sees no uncommitted."""
    if asked.max_num_offsets < 0:
        return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    offsets = _offsets_before(partition.log, asked.timestamp, now_ms)[: asked.max_num_offsets]
    high_watermark = partition.log.high_watermark
    if is_client and offsets and offsets[0] > high_watermark:
        offsets = [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, old_style_offsets=tuple(offsets)
    )


def _offsets_before(log: Log, timestamp: int, now_ms: int) -> list[int]:
    """Where segments begin that were last written by that time, newest first. The log's end is of now."""
    marks = [(max(each.base_offset, log.log_start_offset), each.modified_ms) for each in log.segments]
    if log.segments[-1].size:
        marks.append((log.end_offset, now_ms))
    if timestamp == EARLIEST:
        marks = marks[:1]
    while timestamp >= 0 and marks and marks[-1][1] > timestamp:
        marks.pop()
    return [offset for offset, _ in reversed(marks)]


def _refused(asked: ListOffsetsPartition, error: ErrorCode | int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=int(error))


def _answer(
    node: "Node", request: Request, body: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if body.isolation_level not in (0, READ_COMMITTED):
        return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    if asked.timestamp < 0 and request.api_version < SINCE.get(asked.timestamp, 99):
        return _refused(asked, ErrorCode.UNSUPPORTED_VERSION)
    known = node.metadata.topics.get(topic)
    if known is None or asked.partition_index not in known.partitions:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = node.partitions.find(topic, asked.partition_index)
    if partition is None:
        return _refused(asked, node.partitions.why_missing(topic, asked.partition_index))
    is_debug = body.replica_id == DEBUG_CONSUMER
    check = partition.check_epoch if is_debug else partition.check_leadership
    if code := check(asked.current_leader_epoch):
        return _refused(asked, code)
    try:
        if request.api_version == 0:
            return _old_style(partition, asked, body.replica_id == CONSUMER, node.clock.wall_ms())
        return _find(partition, asked, _Bound(partition, body), request.api_version)
    except LogDirectoryFailed as failed:
        node.partitions.directory_failed(failed)
        return _refused(asked, ErrorCode.KAFKA_STORAGE_ERROR)


class _Bound:
    """How far this client may see, and whether it is told that it cannot be known yet."""

    __slots__ = ("is_client", "offset")

    def __init__(self, partition: Partition, body: ListOffsetsRequest) -> None:
        self.is_client = body.replica_id == CONSUMER
        log = partition.log
        if not self.is_client:
            self.offset = log.end_offset
        elif body.isolation_level == READ_COMMITTED:
            self.offset = log.last_stable_offset
        else:
            self.offset = log.high_watermark


def _find(
    partition: Partition, asked: ListOffsetsPartition, bound: _Bound, version: int
) -> ListOffsetsPartitionResponse:
    log = partition.log
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    leader = partition.leader
    is_unsure = bound.is_client and leader is not None and not leader.may_tell_latest_offset()
    unsure = (
        ErrorCode.OFFSET_NOT_AVAILABLE
        if version >= OFFSET_NOT_AVAILABLE_SINCE
        else ErrorCode.LEADER_NOT_AVAILABLE
    )
    if asked.timestamp == LATEST:
        if is_unsure:
            return _refused(asked, unsure)
        answer.offset, answer.leader_epoch = bound.offset, partition.leader_epoch
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = log.log_start_offset
        answer.leader_epoch = log.epochs.epoch_for_offset(log.log_start_offset)
        if answer.leader_epoch < 0 and log.log_start_offset == log.end_offset:
            answer.leader_epoch = partition.leader_epoch
    elif asked.timestamp != LATEST_TIERED:
        is_max = asked.timestamp == MAX_TIMESTAMP
        found = log.offset_of_max_timestamp() if is_max else log.offset_for_timestamp(asked.timestamp)
        if found is not None and found.offset < bound.offset:
            answer.timestamp, answer.offset, answer.leader_epoch = found
        elif is_unsure:
            return _refused(asked, unsure)
    return answer
