"""AddPartitionsToTxn 0-5: partitions join a transaction, or are found in it.

Clients send versions 0 to 3, with one transaction. Brokers send 4 and 5, with many, to verify that what they
are asked to write belongs to a transaction (KIP-890).
"""

from collections.abc import Callable

from ottla.broker.apis.transactions.outcome import in_version
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.shard import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import INTERNAL_TOPICS
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

BATCHED_SINCE = 4

Codes = dict[TopicPartition, ErrorCode]


def handle(node: Node, request: Request, body: AddPartitionsToTxnRequest) -> None:
    """Answered when all transactions of the request are done."""
    if request.api_version < BATCHED_SINCE:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=body.v3_and_below_transactional_id,
            producer_id=body.v3_and_below_producer_id,
            producer_epoch=body.v3_and_below_producer_epoch,
            topics=body.v3_and_below_topics,
        )
        adding = _Adding(request, [transaction])
    else:
        adding = _Adding(request, body.transactions)
    for place, transaction in enumerate(adding.transactions):
        _add(node, request.api_version, transaction, adding.outcome_of(place))
    adding.ended()


class _Adding:
    """Counts the transactions that are not yet done; the last one answers."""

    __slots__ = ("_open", "_outcomes", "request", "transactions")

    def __init__(self, request: Request, transactions: list[AddPartitionsToTxnTransaction]) -> None:
        self.request = request
        self.transactions = transactions
        self._outcomes: list[Codes] = [{} for _ in transactions]
        self._open = 1 + len(transactions)

    def outcome_of(self, place: int) -> Callable[[Codes], None]:
        def then(codes: Codes) -> None:
            self._outcomes[place] = codes
            self.ended()

        return then

    def ended(self) -> None:
        self._open -= 1
        if not self._open:
            self.request.reply(self._response())

    def _response(self) -> AddPartitionsToTxnResponse:
        version = self.request.api_version
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_rows(transaction.topics, codes, version),
            )
            for transaction, codes in zip(self.transactions, self._outcomes, strict=True)
        ]
        if version < BATCHED_SINCE:
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
        return AddPartitionsToTxnResponse(results_by_transaction=results)


def _rows(
    topics: list[AddPartitionsToTxnTopic], codes: Codes, version: int
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=in_version(codes[TopicPartition(topic.name, index)], version),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _add(
    node: Node, version: int, asked: AddPartitionsToTxnTransaction, then: Callable[[Codes], None]
) -> None:
    host, name = node.transaction_coordinator, asked.transactional_id
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    refused = _refuse_partitions(node, version, partitions)
    if refused:
        then({tp: refused.get(tp, ErrorCode.OPERATION_NOT_ATTEMPTED) for tp in partitions})
        return
    found = host.find(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        then(dict.fromkeys(partitions, found))
        return
    shard, number = found
    producer = Producer(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        then(shard.verify(name, producer, partitions))
        return
    token = host.token(lambda error: then(dict.fromkeys(partitions, error)))
    host.perform(number, shard.add_partitions(token, name, producer, partitions, host.now()))


def _refuse_partitions(node: Node, version: int, partitions: list[TopicPartition]) -> Codes:
    """Partitions that do not exist; and those of internal topics, which only brokers may add."""
    refused: Codes = {}
    for tp in partitions:
        if version < BATCHED_SINCE and tp.topic in INTERNAL_TOPICS:
            refused[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif node.metadata.partition(tp) is None:
            refused[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused
