"""DescribeTransactions 0: state, time-out and partitions of transactions that this broker coordinates."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.txn.queries import describe, describe_refused
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


def handle(node: Node, request: Request, body: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(node, name) for name in body.transactional_ids]
    )


def _describe(node: Node, name: str) -> TransactionState:
    found = node.transaction_coordinator.find(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        return describe_refused(name, found)
    shard, _ = found
    return describe(shard.transactions.get(name), name)
