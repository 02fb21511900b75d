"""DeleteRecords 0-2: a log's start moves up; answered when every live replica has followed."""

from ottla.broker.clients.commit_waits import ParkedDelete
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.partition import Partition
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.internal_topics import INTERNAL_TOPICS
from ottla.wire.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


def handle(node: Node, request: Request, body: DeleteRecordsRequest) -> DeleteRecordsResponse | None:
    """Move what may be moved, then wait for the followers."""
    response = DeleteRecordsResponse(topics=[])
    parked = ParkedDelete(node.waiting, request, response)
    for topic, offsets in _asked(body).items():
        results = []
        for index, asked in offsets.items():
            result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1)
            results.append(result)
            found = _find(node, topic, index)
            if isinstance(found, ErrorCode):
                result.error_code = int(found)
                continue
            offset = found.log.high_watermark if asked == HIGH_WATERMARK else asked
            code = _delete(node, found, offset)
            if code is not ErrorCode.NONE:
                result.error_code = int(code)
            else:
                parked.wait_for(found, offset, result)
        response.topics.append(DeleteRecordsTopicResult(name=topic, partitions=results))
    if not parked.is_waiting:
        return response
    node.waiting.deadlines.add(parked, max(0, body.timeout_ms))
    return None


def _asked(body: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """The offsets by topic and partition; of a partition named twice the last word counts, as in Kafka."""
    offsets: dict[str, dict[int, int]] = {}
    for topic in body.topics:
        of_topic = offsets.setdefault(topic.name, {})
        of_topic.update({row.partition_index: row.offset for row in topic.partitions})
    return offsets


def _find(node: Node, topic: str, index: int) -> Partition | ErrorCode:
    known = node.metadata.topics.get(topic)
    if known is None or index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    partition = node.partitions.find(topic, index)
    if partition is None:
        return node.partitions.why_missing(topic, index)
    return partition if partition.leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _delete(node: Node, partition: Partition, offset: int) -> ErrorCode:
    log = partition.log
    if not log.config.deletes_old_segments:
        return ErrorCode.POLICY_VIOLATION
    if not 0 <= offset <= log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        if log.raise_log_start_offset(offset):
            partition.log_start_moved()
    except LogDirectoryFailed as failed:
        node.partitions.directory_failed(failed)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
