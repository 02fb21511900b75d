"""Transactions: list and describe them, see what a partition knows of its producers, end one that hangs."""

from collections.abc import Iterable

from ottla.client.admin.asking import TRANSACTION, ask_all, ask_coordinator, ask_target, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.client.errors import BrokerError
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.api_versions import ApiVersionsResponse
from ottla.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from ottla.wire.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.apis.list_transactions import TransactionState as ListedTransaction
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.wire.keys import ApiKey

ALL_AGES = -1
OPEN = "Ongoing"
TWO_PHASE_VERSION = 6
"""Of InitProducerId."""

NO_TIMEOUT_MS = 0x7FFF_FFFF
"""The time-out of a transaction that waits for a decision."""


def is_prepared(described: TransactionState) -> bool:
    """Whether an open transaction waits for a decision, for as long as that takes (KIP-939)."""
    return described.transaction_state == OPEN and described.transaction_timeout_ms == NO_TIMEOUT_MS


def keeps_prepared(versions: ApiVersionsResponse) -> bool:
    """Whether a broker keeps prepared transactions: it then speaks the version that asks for it."""
    highest = {row.api_key: row.max_version for row in versions.api_keys}
    return highest.get(ApiKey.INIT_PRODUCER_ID, 0) >= TWO_PHASE_VERSION


def list_prepared(
    engine: Engine, timeout_ms: int | None = None
) -> Operation[list[tuple[int, TransactionState]]]:
    """The prepared transactions, each with its coordinator; the oldest first."""
    listed = yield from list_transactions(engine, states=[OPEN], timeout_ms=timeout_ms)
    found: list[tuple[int, TransactionState]] = []
    for broker, rows in listed.items():
        for row in rows:
            try:
                described = yield from describe_transaction(engine, row.transactional_id, timeout_ms)
            except BrokerError as error:
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            if is_prepared(described):
                found.append((broker, described))
    return sorted(found, key=lambda each: each[1].transaction_start_time_ms)


def list_transactions(
    engine: Engine,
    *,
    producer_ids: Iterable[int] = (),
    states: Iterable[str] = (),
    older_than_ms: int = ALL_AGES,
    timeout_ms: int | None = None,
) -> Operation[dict[int, list[ListedTransaction]]]:
    """The transactions of each coordinator, or those of some producers or states, or older than that."""
    request = ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=older_than_ms,
    )
    answers = yield from ask_all(
        engine, request, ListTransactionsResponse, timeout_ms, lambda r: [r.error_code]
    )
    for answer in answers.values():
        raise_for(answer.error_code)
    return {broker: answer.transaction_states for broker, answer in answers.items()}


def describe_transaction(
    engine: Engine, transactional_id: str, timeout_ms: int | None = None
) -> Operation[TransactionState]:
    """The state, time-out and partitions of a transaction."""
    response = yield from ask_coordinator(
        engine,
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=(transactional_id,)),
        DescribeTransactionsResponse,
        lambda r: [row.error_code for row in r.transaction_states],
        key_type=TRANSACTION,
        timeout_ms=timeout_ms,
    )
    described = response.transaction_states[0]
    raise_for(described.error_code)
    return described


def describe_producers(
    engine: Engine, broker: int, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, PartitionResponse]]:
    """What one replica knows of the producers of each partition."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=tuple(ids)) for name, ids in topics.items()]
    )
    response = yield from ask_target(engine, broker, request, DescribeProducersResponse, timeout_ms)
    return {
        TopicPartition(topic.name, row.partition_index): row
        for topic in response.topics
        for row in topic.partitions
    }


def abort_transaction(
    engine: Engine,
    leader: int,
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timeout_ms: int | None = None,
) -> Operation[None]:
    """Write an abort marker, as a coordinator would, for a transaction that none ends."""
    topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=(partition.partition,))
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=coordinator_epoch,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    response = yield from ask_target(engine, leader, request, WriteTxnMarkersResponse, timeout_ms)
    raise_for(response.markers[0].topics[0].partitions[0].error_code)
