"""OffsetForLeaderEpoch 0-4: where a leader epoch ended in this leader's log."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(node: Node, request: Request, body: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Answer each partition by itself."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(node, topic.topic, each) for each in topic.partitions]
            )
            for topic in body.topics
        ]
    )


def _answer(node: Node, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    known = node.metadata.topics.get(topic)
    partition = node.partitions.find(topic, asked.partition)
    if known is None or asked.partition not in known.partitions:
        answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif partition is None:
        answer.error_code = int(node.partitions.why_missing(topic, asked.partition))
    else:
        answer.error_code = partition.check_leadership(asked.current_leader_epoch)
        if not answer.error_code:
            try:
                answer.leader_epoch, answer.end_offset = partition.log.epochs.end_offset_for(
                    asked.leader_epoch, partition.log.end_offset
                )
            except LogDirectoryFailed as failed:
                node.partitions.directory_failed(failed)
                answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return answer
