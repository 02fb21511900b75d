"""OffsetFetch: how far groups have read; several groups at once since version 8."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.coordinator.group.queries import fetch_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

FIRST_WITH_TOP_LEVEL_ERROR = 2
FIRST_WITH_GROUPS = 8
NO_OFFSET = -1


def handle(node: "Node", request: Request, body: OffsetFetchRequest) -> OffsetFetchResponse:
    if request.api_version >= FIRST_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                _of_group(
                    node,
                    group.group_id,
                    None
                    if group.topics is None
                    else [TopicPartition(t.name, p) for t in group.topics for p in t.partition_indexes],
                )
                for group in body.groups
            ]
        )
    asked = (
        None
        if body.topics is None
        else [TopicPartition(t.name, p) for t in body.topics for p in t.partition_indexes]
    )
    answer = _of_group(node, body.group_id, asked)
    if answer.error_code != ErrorCode.NONE and request.api_version < FIRST_WITH_TOP_LEVEL_ERROR:
        return _refused_by_partition(asked or [], answer.error_code)
    return OffsetFetchResponse(
        error_code=answer.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=row.partition_index,
                        committed_offset=row.committed_offset,
                        committed_leader_epoch=row.committed_leader_epoch,
                        metadata=row.metadata,
                        error_code=row.error_code,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in answer.topics
        ],
    )


def _of_group(
    node: "Node", group_id: str, partitions: list[TopicPartition] | None
) -> OffsetFetchResponseGroup:
    found = node.coordinator.find(group_id)
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=found)
    shard, _ = found
    return fetch_offsets(shard.groups.get(group_id), group_id, partitions)


def _refused_by_partition(asked: list[TopicPartition], error: int) -> OffsetFetchResponse:
    topics: dict[str, list[OffsetFetchResponsePartition]] = {}
    for partition in asked:
        topics.setdefault(partition.topic, []).append(
            OffsetFetchResponsePartition(
                partition_index=partition.partition,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=error,
            )
        )
    return OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )
