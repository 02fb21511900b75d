"""OffsetFetch: how far groups have read; several groups at once since version 8."""

from ottla.broker.clients.request import Request
from ottla.broker.coordinating import zookeeper_offsets
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

FIRST_WITH_TOP_LEVEL_ERROR = 2
FIRST_WITH_GROUPS = 8
NO_OFFSET = -1
KEPT_IN_ZOOKEEPER = 0
"""The version whose offsets are not the coordinator's."""


def handle(node: Node, request: Request, body: OffsetFetchRequest) -> OffsetFetchResponse | None:
    if request.api_version >= FIRST_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                _of_group(
                    node,
                    group.group_id,
                    None
                    if group.topics is None
                    else [TopicPartition(t.name, p) for t in group.topics for p in t.partition_indexes],
                    require_stable=body.require_stable,
                )
                for group in body.groups
            ]
        )
    asked = (
        None
        if body.topics is None
        else [TopicPartition(t.name, p) for t in body.topics for p in t.partition_indexes]
    )
    if request.api_version == KEPT_IN_ZOOKEEPER:
        _from_zookeeper(node, request, body.group_id, asked or [])
        return None
    answer = _of_group(node, body.group_id, asked, require_stable=body.require_stable)
    if answer.error_code != ErrorCode.NONE and request.api_version < FIRST_WITH_TOP_LEVEL_ERROR:
        return _by_partition(dict.fromkeys(asked or [], ErrorCode(answer.error_code)))
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
    node: Node, group_id: str, partitions: list[TopicPartition] | None, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    found = node.group_coordinator.find(group_id)
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=found)
    shard, _ = found
    return shard.fetch(group_id, partitions, require_stable=require_stable)


def _from_zookeeper(node: Node, request: Request, group_id: str, asked: list[TopicPartition]) -> None:
    known = [tp for tp in asked if node.metadata.partition(tp) is not None]

    def answer(found: dict[TopicPartition, int | ErrorCode]) -> None:
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        request.reply(_by_partition({tp: found.get(tp, missing) for tp in asked}))

    node.tasks.spawn(zookeeper_offsets.fetch(group_id, known), request, answer)


def _by_partition(offsets: dict[TopicPartition, int | ErrorCode]) -> OffsetFetchResponse:
    """One row a partition: its offset, or an error code."""
    topics: dict[str, list[OffsetFetchResponsePartition]] = {}
    for partition, offset in offsets.items():
        is_refused = isinstance(offset, ErrorCode)
        topics.setdefault(partition.topic, []).append(
            OffsetFetchResponsePartition(
                partition_index=partition.partition,
                committed_offset=NO_OFFSET if is_refused else offset,
                metadata="",
                error_code=offset if is_refused else ErrorCode.NONE,
            )
        )
    return OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )
