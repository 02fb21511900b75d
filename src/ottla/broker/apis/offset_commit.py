"""OffsetCommit: how far a group has read, answered once it is safe in the log."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.coordinator.group.group import CommittedOffset
from ottla.coordinator.group.offsets import Commit, commit_answer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

DEFAULT_RETENTION = -1


def handle(node: "Node", request: Request, body: OffsetCommitRequest) -> OffsetCommitResponse | None:
    host = node.coordinator
    commit = _commit_of(node, body)
    found = host.find(body.group_id)
    if isinstance(found, ErrorCode):
        return commit_answer(commit, found)
    if not commit.offsets:
        return commit_answer(commit, ErrorCode.NONE)
    shard, number = found
    host.perform(number, shard.commit(host.ask(request), commit, host.now()))
    return None


def _commit_of(node: "Node", body: OffsetCommitRequest) -> Commit:
    wall_ms = node.clock.wall_ms()
    retention_ms = body.retention_time_ms
    expires_ms = -1 if retention_ms == DEFAULT_RETENTION else wall_ms + retention_ms
    offsets: dict[TopicPartition, CommittedOffset] = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for topic in body.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if node.metadata.partition(partition) is None:
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets[partition] = CommittedOffset(
                    offset=row.committed_offset,
                    leader_epoch=row.committed_leader_epoch,
                    metadata=row.committed_metadata or "",
                    commit_timestamp_ms=wall_ms,
                    expire_timestamp_ms=expires_ms,
                )
    return Commit(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        offsets=offsets,
        refused=refused,
    )
