"""DescribeProducers 0: the producers a partition remembers, with their open transactions."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.topic_names import why_illegal
from ottla.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(node: Node, request: Request, body: DescribeProducersRequest) -> DescribeProducersResponse:
    """Any replica may answer this."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(node, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in body.topics
        ]
    )


def _describe(node: Node, topic: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index, active_producers=[])
    wrong = why_illegal(topic)
    if wrong is not None:
        answer.error_code = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
        answer.error_message = f"Topic name is invalid: {wrong}"
        return answer
    known = node.metadata.topics.get(topic)
    partition = node.partitions.find(topic, index)
    if known is None:
        answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        answer.error_message = "This server does not host this topic-partition."
    elif index not in known.partitions:
        answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif partition is None:
        answer.error_code = int(node.partitions.why_missing(topic, index))
    else:
        try:
            answer.active_producers = [
                ProducerState(
                    producer_id=producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=producer.txn_first_offset,
                )
                for producer_id, producer in partition.log.producers.items()
            ]
        except LogDirectoryFailed as failed:
            node.partitions.directory_failed(failed)
            answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return answer
