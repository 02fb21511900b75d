"""TxnOffsetCommit 0-4: offsets of a group that count once their transaction is committed.

The coordinator of the transaction is asked first whether the group's partition belongs to it (KIP-890),
unless the log has that transaction open already.
"""

from collections.abc import Callable
from dataclasses import replace

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.group.answers import commit_answer
from ottla.coordinator.group.requests import Commit
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Producer
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC
from ottla.records.batch import NO_SEQUENCE
from ottla.wire.apis.offset_commit import OffsetCommitResponse
from ottla.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_SINCE = 2
ABORTABLE_SINCE = 4

VERDICTS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
}
"""The transaction coordinator's answer in the words of this API; others stay as they are."""


def handle(node: Node, request: Request, body: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse | None:
    commit = _commit_of(node, body)
    found = node.group_coordinator.find(body.group_id) if body.group_id else ErrorCode.INVALID_GROUP_ID
    if not commit.offsets:
        return _response(commit_answer(commit, ErrorCode.NONE), request.api_version)
    if isinstance(found, ErrorCode):
        return _response(commit_answer(commit, found), request.api_version)
    _, number = found
    verification = _start_verification(node, number, body)
    if isinstance(verification, ErrorCode):
        return _response(commit_answer(commit, verification), request.api_version)
    if verification is None:
        _commit(node, request, commit)
        return None
    partition = TopicPartition(OFFSETS_TOPIC, number)

    def verified(errors: dict[TopicPartition, ErrorCode]) -> None:
        error = errors.get(partition, ErrorCode.NONE)
        if error is ErrorCode.NONE:
            _commit(node, request, replace(commit, verification=verification))
        else:
            refused = commit_answer(commit, VERDICTS.get(error, error))
            request.reply(_response(refused, request.api_version))

    node.transaction_verifier.verify(
        body.transactional_id, body.producer_id, body.producer_epoch, [partition], verified
    )
    return None


def _start_verification(node: Node, number: int, body: TxnOffsetCommitRequest) -> int | ErrorCode | None:
    """The token to show with the append; None if nothing need be verified."""
    partition = node.partitions.find(OFFSETS_TOPIC, number)
    if partition is None or partition.leader is None:
        return ErrorCode.NOT_COORDINATOR
    if not node.config.transactions.transaction_partition_verification_enable:
        return None
    try:
        return partition.log.producers.start_verification(
            body.producer_id, body.producer_epoch, NO_SEQUENCE, node.clock.wall_ms()
        )
    except LogDirectoryFailed as failed:
        node.partitions.directory_failed(failed)
        return ErrorCode.NOT_COORDINATOR


def _commit(node: Node, request: Request, commit: Commit) -> None:
    """The group's coordinator may have moved while the other one was asked."""
    host = node.group_coordinator
    reply = _reply(request)
    found = host.find(commit.group_id)
    if isinstance(found, ErrorCode):
        reply(commit_answer(commit, found))
        return
    shard, number = found
    host.perform(number, shard.commit(host.token(reply), commit, host.now()))


def _reply(request: Request) -> Callable[[OffsetCommitResponse], None]:
    return lambda response: request.reply(_response(response, request.api_version))


def _response(answer: OffsetCommitResponse, version: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition_index,
                        error_code=_in_version(ErrorCode(row.error_code), version),
                    )
                    for row in topic.partitions
                ],
            )
            for topic in answer.topics
        ]
    )


def _in_version(error: ErrorCode, version: int) -> ErrorCode:
    """Old clients take an error that they do not expect for final (KAFKA-7296)."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _commit_of(node: Node, body: TxnOffsetCommitRequest) -> Commit:
    wall_ms = node.clock.wall_ms()
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
                )
    return Commit(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        generation=body.generation_id,
        offsets=offsets,
        refused=refused,
        producer=Producer(body.producer_id, body.producer_epoch),
    )
