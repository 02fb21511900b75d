"""Transactions that come to a broker that coordinates none: ask whoever does."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.wire.stored import TRANSACTION_STATES

if TYPE_CHECKING:
    from ottla.broker.node import Node


def add_partitions_to_txn(
    node: "Node", request: Request, body: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Not the coordinator, for every partition."""
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_rows(transaction.topics)
            )
            for transaction in body.transactions
        ],
        results_by_topic_v3_and_below=_rows(body.v3_and_below_topics),
    )


def _rows(topics: list[AddPartitionsToTxnTopic]) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=ErrorCode.NOT_COORDINATOR
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def add_offsets_to_txn(
    node: "Node", request: Request, body: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Not the coordinator."""
    return AddOffsetsToTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)


def end_txn(node: "Node", request: Request, body: EndTxnRequest) -> EndTxnResponse:
    """Not the coordinator."""
    return EndTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)


def txn_offset_commit(
    node: "Node", request: Request, body: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Not the coordinator, for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=ErrorCode.NOT_COORDINATOR
                    )
                    for row in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def describe_transactions(
    node: "Node", request: Request, body: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Not the coordinator of any of them."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(error_code=ErrorCode.NOT_COORDINATOR, transactional_id=transactional_id)
            for transactional_id in body.transactional_ids
        ]
    )


def list_transactions(
    node: "Node", request: Request, body: ListTransactionsRequest
) -> ListTransactionsResponse:
    """None is coordinated here; a filter that names no state is told so."""
    unknown = tuple(state for state in body.state_filters if state not in TRANSACTION_STATES)
    return ListTransactionsResponse(unknown_state_filters=unknown)
