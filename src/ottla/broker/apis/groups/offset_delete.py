"""OffsetDelete: single offsets of a group go, unless the group still reads the topic."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(node: Node, request: Request, body: OffsetDeleteRequest) -> OffsetDeleteResponse:
    host = node.group_coordinator
    found = host.find(body.group_id) if body.group_id else ErrorCode.INVALID_GROUP_ID
    if isinstance(found, ErrorCode):
        return OffsetDeleteResponse(error_code=found)
    asked = dict.fromkeys(
        TopicPartition(topic.name, row.partition_index) for topic in body.topics for row in topic.partitions
    )
    known = [partition for partition in asked if node.metadata.partition(partition) is not None]
    shard, number = found
    error, codes, effects = shard.delete_offsets(body.group_id, known, host.now())
    host.perform(number, effects)
    if error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=error)
    topics: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for partition in asked:
        code = codes.get(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topics.setdefault(partition.topic, []).append(
            OffsetDeleteResponsePartition(partition_index=partition.partition, error_code=code)
        )
    return OffsetDeleteResponse(
        topics=[OffsetDeleteResponseTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )
