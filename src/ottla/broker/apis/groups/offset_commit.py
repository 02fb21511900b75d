"""OffsetCommit: how far a group has read, answered once it is safe in the log."""

from dataclasses import replace

from ottla.broker.clients.request import Request
from ottla.broker.coordinating import zookeeper_offsets
from ottla.broker.node import Node
from ottla.coordinator.group.answers import commit_answer
from ottla.coordinator.group.requests import Commit
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.primitives import java_length

DEFAULT_RETENTION = -1
DEFAULT_TIMESTAMP = -1
NEVER_MS = 2**63 - 1
KEPT_IN_ZOOKEEPER = 0
"""The version whose offsets are not the coordinator's."""


def handle(node: Node, request: Request, body: OffsetCommitRequest) -> OffsetCommitResponse | None:
    host = node.group_coordinator
    commit = _commit_of(node, body)
    if request.api_version == KEPT_IN_ZOOKEEPER:
        return _commit_to_zookeeper(node, request, commit)
    found = host.find(body.group_id)
    if isinstance(found, ErrorCode):
        return commit_answer(commit, found)
    if not commit.offsets:
        return commit_answer(commit, ErrorCode.NONE)
    shard, number = found
    host.perform(number, shard.commit(host.token(request.reply), commit, host.now()))
    return None


def _commit_to_zookeeper(node: Node, request: Request, commit: Commit) -> OffsetCommitResponse | None:
    limit = node.config.groups.offset_metadata_max_bytes
    too_large = {tp for tp, row in commit.offsets.items() if java_length(row.metadata) > limit}
    taken = {tp: row.offset for tp, row in commit.offsets.items() if tp not in too_large}

    def answer(codes: dict[TopicPartition, ErrorCode]) -> None:
        refused = {tp: code for tp, code in codes.items() if code is not ErrorCode.NONE}
        outcome = replace(commit, refused={**commit.refused, **refused})
        request.reply(commit_answer(outcome, ErrorCode.NONE, too_large))

    node.tasks.spawn(zookeeper_offsets.commit(commit.group_id, taken), request, answer)
    return None


def _commit_of(node: Node, body: OffsetCommitRequest) -> Commit:
    wall_ms = node.clock.wall_ms()
    retention_ms = body.retention_time_ms
    expires_ms = -1 if retention_ms == DEFAULT_RETENTION else min(wall_ms + retention_ms, NEVER_MS)
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
                    commit_timestamp_ms=wall_ms
                    if row.commit_timestamp == DEFAULT_TIMESTAMP
                    else row.commit_timestamp,
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
