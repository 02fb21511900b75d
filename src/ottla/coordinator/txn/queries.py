"""Requests that only read: DescribeTransactions, ListTransactions."""

from collections.abc import Iterable, Iterator

from ottla.coordinator.txn.states import PREPARED
from ottla.coordinator.txn.transaction import Transaction
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_transactions import TopicData, TransactionState
from ottla.wire.apis.list_transactions import TransactionState as ListedTransaction


def describe(known: Transaction | None, transactional_id: str) -> TransactionState:
    """One transactional id; of a transaction that is ending, the partitions that have no marker yet."""
    if known is None:
        return describe_refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    stored = known.stored
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(known.unmarked if stored.state in PREPARED else stored.partitions):
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=stored.state.shown,
        transaction_timeout_ms=stored.timeout_ms,
        transaction_start_time_ms=known.shown_start_ms,
        producer_id=stored.producer_id,
        producer_epoch=stored.epoch,
        topics=[TopicData(topic=name, partitions=tuple(ids)) for name, ids in topics.items()],
    )


def describe_refused(transactional_id: str, error: ErrorCode) -> TransactionState:
    """A refused DescribeTransactions."""
    return TransactionState(error_code=error, transactional_id=transactional_id)


def list_transactions(
    transactions: Iterable[Transaction],
    states: frozenset[str],
    producer_ids: frozenset[int],
    older_than_ms: int,
    wall_ms: int,
) -> Iterator[ListedTransaction]:
    """Those that match the filters; an empty filter matches all, and so does a negative age.

    As in Kafka, an id that never had a transaction is older than any age.
    """
    for known in transactions:
        stored = known.stored
        if (
            (not states or stored.state.shown in states)
            and (not producer_ids or stored.producer_id in producer_ids)
            and (older_than_ms < 0 or wall_ms - known.shown_start_ms > older_than_ms)
        ):
            yield ListedTransaction(
                transactional_id=known.transactional_id,
                producer_id=stored.producer_id,
                transaction_state=stored.state.shown,
            )
