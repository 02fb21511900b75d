"""Guards of APIs that name transactional ids."""

from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import (
    FORBIDDEN_CLUSTER,
    FORBIDDEN_GROUP,
    FORBIDDEN_TRANSACTION,
    RowKind,
    adding,
    name_of,
)
from ottla.broker.clients.request import Request
from ottla.coordinator.txn.core import init_refused
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import INTERNAL_TOPICS
from ottla.security.acls.kinds import Operation
from ottla.wire.apis import add_offsets_to_txn as add_offsets_api
from ottla.wire.apis import add_partitions_to_txn as add_api
from ottla.wire.apis import describe_transactions as describe_api
from ottla.wire.apis import init_producer_id as init_api
from ottla.wire.apis import list_transactions as list_api
from ottla.wire.apis import txn_offset_commit as commit_api
from ottla.wire.apis import write_txn_markers as markers_api

_ADDED = RowKind(
    add_api.AddPartitionsToTxnTopicResult,
    lambda index, error: add_api.AddPartitionsToTxnPartitionResult(index, error),
)
_COMMITTED = RowKind(
    commit_api.TxnOffsetCommitResponseTopic,
    lambda index, error: commit_api.TxnOffsetCommitResponsePartition(index, error),
)
_MARKED = RowKind(
    markers_api.WritableTxnMarkerTopicResult,
    lambda index, error: markers_api.WritableTxnMarkerPartitionResult(index, error),
)
_BATCHED_SINCE = 4


def init_producer_id(
    node: Any, access: Access, request: Request, body: init_api.InitProducerIdRequest
) -> Any:
    """An idempotent producer needs a right to the cluster, or may write to any topic."""
    if body.transactional_id is not None:
        is_allowed = access.transaction(body.transactional_id)
        return None if is_allowed else init_refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if access.cluster(is_quiet=True) or access.any_topic():
        return None
    return init_refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def add_partitions_to_txn(
    node: Any, access: Access, request: Request, body: add_api.AddPartitionsToTxnRequest
) -> Any:
    """Clients add to one transaction, all or nothing; brokers ask about many."""
    if request.api_version >= _BATCHED_SINCE:
        is_allowed = access.cluster()
        return None if is_allowed else add_api.AddPartitionsToTxnResponse(error_code=FORBIDDEN_CLUSTER)
    topics = body.v3_and_below_topics
    if not access.transaction(body.v3_and_below_transactional_id):
        rows = _ADDED.refused(topics, FORBIDDEN_TRANSACTION)
        return add_api.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)
    allowed = access.topics(name_of(topic) for topic in topics if topic.name not in INTERNAL_TOPICS)
    if all(topic.name in allowed for topic in topics):
        return None
    rows = []
    for topic in topics:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic.name in allowed:
            is_known = topic.name in node.metadata.topics
            error = ErrorCode.OPERATION_NOT_ATTEMPTED if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        rows += _ADDED.refused([topic], error)
    return add_api.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


def add_offsets_to_txn(
    node: Any, access: Access, request: Request, body: add_offsets_api.AddOffsetsToTxnRequest
) -> Any:
    if not access.transaction(body.transactional_id):
        return add_offsets_api.AddOffsetsToTxnResponse(error_code=FORBIDDEN_TRANSACTION)
    if not access.group(body.group_id):
        return add_offsets_api.AddOffsetsToTxnResponse(error_code=FORBIDDEN_GROUP)
    return None


def txn_offset_commit(
    node: Any, access: Access, request: Request, body: commit_api.TxnOffsetCommitRequest
) -> Any:
    if not access.transaction(body.transactional_id):
        rows = _COMMITTED.refused(body.topics, FORBIDDEN_TRANSACTION)
        return commit_api.TxnOffsetCommitResponse(topics=rows)
    if not access.group(body.group_id):
        rows = _COMMITTED.refused(body.topics, FORBIDDEN_GROUP)
        return commit_api.TxnOffsetCommitResponse(topics=rows)
    body.topics, rows = _COMMITTED.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None
    return None


def write_txn_markers(
    node: Any, access: Access, request: Request, body: markers_api.WriteTxnMarkersRequest
) -> Any:
    """Brokers do it, and whoever may alter the cluster."""
    if access.cluster(Operation.ALTER, is_quiet=True) or access.cluster(Operation.CLUSTER_ACTION):
        return None
    return markers_api.WriteTxnMarkersResponse(
        markers=[
            markers_api.WritableTxnMarkerResult(
                marker.producer_id, _MARKED.refused(marker.topics, FORBIDDEN_CLUSTER)
            )
            for marker in body.markers
        ]
    )


def describe_transactions(
    node: Any, access: Access, request: Request, body: describe_api.DescribeTransactionsRequest
) -> None:
    """Of an open transaction only the topics are told that the client may describe."""
    refused = dict.fromkeys(name for name in body.transactional_ids if not access.transaction(name))
    body.transactional_ids = tuple(name for name in body.transactional_ids if name not in refused)
    rows = [
        describe_api.TransactionState(error_code=FORBIDDEN_TRANSACTION, transactional_id=name)
        for name in refused
    ]

    def amend(response: Any) -> Any:
        for state in response.transaction_states:
            shown = access.topics((topic.topic for topic in state.topics), is_quiet=True)
            state.topics = [topic for topic in state.topics if topic.topic in shown]
        response.transaction_states = [*response.transaction_states, *rows]
        return response

    request.amend = amend


def list_transactions(
    node: Any, access: Access, request: Request, body: list_api.ListTransactionsRequest
) -> None:

    def amend(response: Any) -> Any:
        response.transaction_states = [
            row for row in response.transaction_states if access.transaction(row.transactional_id)
        ]
        return response

    request.amend = amend
