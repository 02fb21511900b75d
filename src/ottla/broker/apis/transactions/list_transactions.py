"""ListTransactions 0-1: the transactions this broker coordinates, by state, producer and age."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.txn.queries import list_transactions
from ottla.model.errors import ErrorCode
from ottla.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.stored import TRANSACTION_STATES


def handle(node: Node, request: Request, body: ListTransactionsRequest) -> ListTransactionsResponse:
    """None while a shard is loading; a filter that names no state is told so, and matches nothing."""
    host = node.transaction_coordinator
    if host.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    rows = [
        row
        for shard in host.serving()
        for row in list_transactions(
            shard.transactions.values(),
            frozenset(body.state_filters),
            frozenset(body.producer_id_filters),
            body.duration_filter,
            node.clock.wall_ms(),
        )
    ]
    unknown = tuple(state for state in body.state_filters if state not in TRANSACTION_STATES)
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)
