"""Asking transaction coordinators whether partitions were added to a transaction (KIP-890)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.peer_links import LinkLost
from ottla.broker.topic_names import TRANSACTIONS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.spread import coordinating_partition
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

LANE = "add-partitions"
VERSION = 5


class TransactionVerifier:
    """Finds the coordinator of a transactional id and asks it; every failure is an error per partition."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        then: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """``then`` gets the error of each partition that must not be written to."""
        coordinator = self._coordinator(transactional_id)
        if coordinator is None:
            then(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        by_topic: dict[str, list[int]] = {}
        for name in partitions:
            by_topic.setdefault(name.topic, []).append(name.partition)
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    verify_only=True,
                    topics=[
                        AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                        for topic, indexes in by_topic.items()
                    ],
                )
            ]
        )
        client_id = f"AddPartitionsManager-client-{self._node.broker_id}"
        link = self._node.links.get(coordinator, LANE, client_id=client_id, negotiates=True)
        link.request(request, VERSION, lambda answer: then(_errors(answer, partitions)))

    def _coordinator(self, transactional_id: str) -> BrokerId | None:
        topic = self._node.metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None or not topic.partitions:
            return None
        info = topic.partitions.get(coordinating_partition(transactional_id, len(topic.partitions)))
        return info.leader if info is not None and self._node.metadata.is_alive(info.leader) else None


def _errors(
    answer: AddPartitionsToTxnResponse | LinkLost, partitions: list[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    if isinstance(answer, LinkLost):
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    if answer.error_code:
        return dict.fromkeys(partitions, ErrorCode(answer.error_code))
    errors = {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
        if each.partition_error_code
    }
    return {name: error for name, error in errors.items() if name in partitions}
