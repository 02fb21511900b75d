"""A transactional producer's core before a fake cluster whose broker 2 coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.config import ProducerConfig
from ottla.client.producing.producer import ProducerCore
from ottla.model.errors import ErrorCode
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.apis.end_txn import EndTxnResponse
from ottla.wire.apis.find_coordinator import FindCoordinatorResponse
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster

PRODUCER_ID = 77
COORDINATOR = 2


def added(request: AddPartitionsToTxnRequest, code: int = ErrorCode.NONE) -> AddPartitionsToTxnResponse:
    """An answer with the same code for every partition."""
    topics = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
                for each in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def offsets_answer(request: TxnOffsetCommitRequest, code: int = ErrorCode.NONE) -> TxnOffsetCommitResponse:
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code)
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)


ANSWERS: dict[ApiKey, Callable[[Any, int], Any]] = {
    ApiKey.FIND_COORDINATOR: lambda _, code: FindCoordinatorResponse(error_code=code, node_id=COORDINATOR),
    ApiKey.INIT_PRODUCER_ID: lambda _, code: InitProducerIdResponse(error_code=code),
    ApiKey.ADD_PARTITIONS_TO_TXN: added,
    ApiKey.ADD_OFFSETS_TO_TXN: lambda _, code: AddOffsetsToTxnResponse(error_code=code),
    ApiKey.TXN_OFFSET_COMMIT: offsets_answer,
    ApiKey.END_TXN: lambda _, code: EndTxnResponse(error_code=code),
}


class TransactingCluster(FakeCluster):
    """Takes every transaction; ``script`` with ``refused`` lets a request fail."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.topic("orders", [1, 2])
        self.epoch = -1

    def refuse(self, api_key: ApiKey, *codes: int) -> None:
        """The next requests of an API get these codes."""
        self.script(api_key, *(lambda request, code=code: ANSWERS[api_key](request, code) for code in codes))

    def names(self) -> list[str]:
        """What was asked of coordinators and leaders, in order."""
        left_out = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
        asked = [message for _, _, message in self.asked if message.spec.api_key not in left_out]
        return [type(message).__name__.removesuffix("Request") for message in asked]

    def _response(self, broker: int, api_key: int, message: Any) -> Any:
        if self.scripted.get(api_key) or api_key not in ANSWERS:
            return super()._response(broker, api_key, message)
        assert broker == COORDINATOR or api_key == ApiKey.FIND_COORDINATOR
        if isinstance(message, InitProducerIdRequest):
            assert message.producer_epoch in (-1, self.epoch)
            self.epoch += 1
            return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)
        return ANSWERS[ApiKey(api_key)](message, ErrorCode.NONE)


def a_transactional_producer(cluster: TransactingCluster, **settings: Any) -> ProducerCore:
    """A producer that is ready for its first transaction."""
    producer = ProducerCore(cluster.engine, ProducerConfig(transactional_id="payments", **settings))
    cluster.run(producer.transactions.init())
    return producer
