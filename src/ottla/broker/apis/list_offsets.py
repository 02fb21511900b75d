"""ListOffsets 0-9: the ends of a log, or where a time begins in it."""

from collections import Counter
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ottla.broker.connections import Connection
from ottla.broker.partition import Partition
from ottla.broker.portions import is_left_after_a_portion
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.storage.log import Log
from ottla.storage.time_search import TimeSearch
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

SEARCH_MAX_MS = 60_000
"""A client that waited so long for a search has to ask again."""

Answer: TypeAlias = Generator[None, None, ListOffsetsPartitionResponse]


def handle(node: "Node", request: Request, body: ListOffsetsRequest) -> ListOffsetsResponse | None:
    """Answer each partition by itself; one named twice is refused twice, as of version 1."""
    return LongAnswer(node, request, body).begin()


class LongAnswer:
    """An answer on its way: searches by time may read much, so that others have their turn in between."""

    __slots__ = ("_node", "_request", "_response", "_steps", "deadline_ms")

    def __init__(self, node: "Node", request: Request, body: ListOffsetsRequest) -> None:
        self._node = node
        self._request = request
        self._response = ListOffsetsResponse(topics=[])
        self._steps: Iterator[None] | None = _answers(node, request, body, self._response)
        self.deadline_ms = 0

    @property
    def connection(self) -> Connection:
        return self._request.connection

    def begin(self) -> ListOffsetsResponse | None:
        """The answer if it takes but a portion; else it follows."""
        if not self._is_left():
            return self._response
        self._node.waiting.deadlines.add(self, SEARCH_MAX_MS)
        self._node.timers.after(0, self._go_on)
        return None

    def _is_left(self) -> bool:
        assert self._steps is not None, "nobody goes on with what was given up"
        return is_left_after_a_portion(self._node.clock, self._steps)

    def _go_on(self) -> None:
        if self._steps is None:
            return
        try:
            is_left = self._is_left()
        except Exception:
            self._node.waiting.deadlines.remove(self)
            self.expire()
            raise
        if is_left:
            self._node.timers.after(0, self._go_on)
        else:
            self._node.waiting.deadlines.remove(self)
            self._request.reply(self._response)

    def expire(self) -> None:
        """It took too long, or the broker leaves: the client has to ask again."""
        self.abandon()
        self._request.hang_up("a search by time was given up")

    def abandon(self) -> None:
        self._steps = None


def _answers(
    node: "Node", request: Request, body: ListOffsetsRequest, response: ListOffsetsResponse
) -> Iterator[None]:
    """Fills in the whole answer; yields wherever it may be interrupted."""
    named = Counter((topic.name, each.partition_index) for topic in body.topics for each in topic.partitions)
    for topic in body.topics:
        rows: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        for each in topic.partitions:
            if named[topic.name, each.partition_index] > 1 and request.api_version > 0:
                rows.append(_refused(each, ErrorCode.INVALID_REQUEST))
            else:
                rows.append((yield from _answer(node, request, body, topic.name, each)))


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
) -> Answer:
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
    node: "Node", body: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
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
    node: "Node",
    request: Request,
    body: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    partition: Partition,
) -> Answer:
    """Where a time begins. While others have their turn, leadership may end and the log may move."""
    timestamp = None if asked.timestamp == MAX_TIMESTAMP else asked.timestamp
    log = partition.log
    search = TimeSearch(log, timestamp)
    while not search.go_on():
        yield
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
