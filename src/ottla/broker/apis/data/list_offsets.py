"""ListOffsets 0-9: the ends of a log, or where a time begins in it."""

from collections import Counter

from ottla.broker.clients.connections import Connection
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.tasks import BREATH, Steps, Task
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import CONSUMER, DEBUG_CONSUMER
from ottla.model.timestamps import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from ottla.storage.log.log import Log
from ottla.storage.log.time_search import TimeSearch
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
OFFSET_NOT_AVAILABLE_SINCE = 5
READ_COMMITTED = 1

SEARCH_MAX_MS = 60_000
"""A client that waited so long for a search has to ask again."""


def handle(node: Node, request: Request, body: ListOffsetsRequest) -> None:
    """Answer each partition by itself; one named twice is refused twice, as of version 1."""
    LongAnswer(node, request, body)


class LongAnswer:
    """An answer on its way: searches by time may read much, so that others have their turn in between."""

    __slots__ = ("_deadlines", "_request", "_task", "deadline_ms")

    def __init__(self, node: Node, request: Request, body: ListOffsetsRequest) -> None:
        self._deadlines = node.waiting.deadlines
        self._request = request
        self.deadline_ms = 0
        self._task: Task[ListOffsetsResponse] = node.tasks.spawn(
            _answers(node, request, body), self, self._done
        )
        if not self._task.is_over:
            self._deadlines.add(self, SEARCH_MAX_MS)

    @property
    def connection(self) -> Connection:
        return self._request.connection

    def _done(self, response: ListOffsetsResponse) -> None:
        self._deadlines.remove(self)
        self._request.reply(response)

    def task_failed(self, error: Exception) -> None:
        self._deadlines.remove(self)
        self._request.task_failed(error)

    def expire(self) -> None:
        """It took too long, or the broker leaves: the client has to ask again."""
        self.abandon()
        self._request.hang_up("a search by time was given up")

    def abandon(self) -> None:
        self._task.cancel()


def _answers(node: Node, request: Request, body: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    """The whole answer; others may have their turn between partitions, and within a search."""
    response = ListOffsetsResponse(topics=[])
    named = Counter((topic.name, each.partition_index) for topic in body.topics for each in topic.partitions)
    for topic in body.topics:
        rows: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        for each in topic.partitions:
            if named[topic.name, each.partition_index] > 1 and request.api_version > 0:
                rows.append(_refused(each, ErrorCode.INVALID_REQUEST))
            else:
                rows.append((yield from _answer(node, request, body, topic.name, each)))
    return response


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
    node: Node, request: Request, body: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> Steps[ListOffsetsPartitionResponse]:
    if body.isolation_level not in (0, READ_COMMITTED):
        return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    if asked.timestamp < 0 and request.api_version < SINCE.get(asked.timestamp, 99):
        return _refused(asked, ErrorCode.UNSUPPORTED_VERSION)
    partition = _readable(node, body, topic, asked)
    if not isinstance(partition, Partition):
        return _refused(asked, partition)
    try:
        if request.api_version == 0:
            return _old_style(partition, asked, body.replica_id == CONSUMER, node.clock.wall_ms())
        if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
            return (yield from _search(node, request, body, topic, asked, partition))
        return _ends(partition, asked, _Bound(partition, body), request.api_version)
    except LogDirectoryFailed as failed:
        node.partitions.directory_failed(failed)
        return _refused(asked, ErrorCode.KAFKA_STORAGE_ERROR)


def _readable(
    node: Node, body: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> Partition | int:
    """The partition, if this client may ask this broker for it; else why not."""
    known = node.metadata.topics.get(topic)
    if known is None or asked.partition_index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = node.partitions.find(topic, asked.partition_index)
    if partition is None:
        return node.partitions.why_missing(topic, asked.partition_index)
    is_debug = body.replica_id == DEBUG_CONSUMER
    check = partition.check_epoch if is_debug else partition.check_leadership
    return check(asked.current_leader_epoch) or partition


class _Bound:
    """How far this client may see, and whether it is told that it cannot be known yet."""

    __slots__ = ("is_unsure", "offset")

    def __init__(self, partition: Partition, body: ListOffsetsRequest) -> None:
        is_client = body.replica_id == CONSUMER
        log, leader = partition.log, partition.leader
        self.is_unsure = is_client and leader is not None and not leader.may_tell_latest_offset()
        if not is_client:
            self.offset = log.end_offset
        elif body.isolation_level == READ_COMMITTED:
            self.offset = log.last_stable_offset
        else:
            self.offset = log.high_watermark


def _search(
    node: Node,
    request: Request,
    body: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    partition: Partition,
) -> Steps[ListOffsetsPartitionResponse]:
    """Where a time begins. While others have their turn, leadership may end and the log may move."""
    timestamp = None if asked.timestamp == MAX_TIMESTAMP else asked.timestamp
    log = partition.log
    search = TimeSearch(log, timestamp)
    while not search.go_on():
        yield BREATH
        now = _readable(node, body, topic, asked)
        if not isinstance(now, Partition):
            return _refused(asked, now)
        partition = now
        if partition.log is not log:
            log = partition.log
            search = TimeSearch(log, timestamp)
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    bound = _Bound(partition, body)
    if search.found is not None and search.found.offset < bound.offset:
        answer.timestamp, answer.offset, answer.leader_epoch = search.found
    elif bound.is_unsure:
        return _refused(asked, _unsure(request.api_version))
    return answer


def _ends(
    partition: Partition, asked: ListOffsetsPartition, bound: _Bound, version: int
) -> ListOffsetsPartitionResponse:
    """Where the log begins or ends; of a tier beyond this disk there is nothing."""
    log = partition.log
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if asked.timestamp == LATEST:
        if bound.is_unsure:
            return _refused(asked, _unsure(version))
        answer.offset, answer.leader_epoch = bound.offset, partition.leader_epoch
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = log.log_start_offset
        answer.leader_epoch = log.epochs.epoch_for_offset(log.log_start_offset)
        if answer.leader_epoch < 0 and log.log_start_offset == log.end_offset:
            answer.leader_epoch = partition.leader_epoch
    return answer


def _unsure(version: int) -> ErrorCode:
    is_known = version >= OFFSET_NOT_AVAILABLE_SINCE
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE
