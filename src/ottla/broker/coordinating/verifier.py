"""Asking transaction coordinators whether partitions were added to a transaction (KIP-890).

If this broker coordinates the transaction itself, the answer is there at once.
"""

from collections.abc import Callable

from ottla.broker.coordinating.host import CoordinatorHost
from ottla.broker.metadata.image import MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.identity import Identity
from ottla.coordinator.shard import Producer
from ottla.coordinator.txn.core import TransactionShard
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

LANE = "add-partitions"
VERSION = 5


class TransactionVerifier:
    """Finds the coordinator of a transactional id and asks it; every failure is an error per partition."""

    __slots__ = ("_host", "_identity", "_links", "_metadata")

    def __init__(
        self,
        identity: Identity,
        links: PeerLinks,
        metadata: MetadataImage,
        host: CoordinatorHost[TransactionShard],
    ) -> None:
        self._identity = identity
        self._host = host
        self._links = links
        self._metadata = metadata

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        then: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """``then`` gets the error of each partition that must not be written to, perhaps inside this call."""
        coordinator = self._coordinator(transactional_id)
        if coordinator is None:
            then(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if coordinator == self._identity.broker_id:
            producer = Producer(producer_id, producer_epoch)
            then(_only_errors(self._verify_here(transactional_id, producer, partitions)))
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
        client_id = f"AddPartitionsManager-client-{self._identity.broker_id}"
        link = self._links.get(coordinator, LANE, client_id=client_id, negotiates=True)
        link.request(request, VERSION, lambda answer: then(_errors(answer, partitions)))

    def _verify_here(
        self, transactional_id: str, producer: Producer, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        found = self._host.find(transactional_id)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(partitions, found)
        shard, _ = found
        return shard.verify(transactional_id, producer, partitions)

    def _coordinator(self, transactional_id: str) -> BrokerId | None:
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None or not topic.partitions:
            return None
        info = topic.partitions.get(coordinating_partition(transactional_id, len(topic.partitions)))
        return info.leader if info is not None and self._metadata.is_alive(info.leader) else None


def _errors(
    answer: AddPartitionsToTxnResponse | LinkLost, partitions: list[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    if isinstance(answer, LinkLost):
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    if answer.error_code:
        return dict.fromkeys(partitions, ErrorCode(answer.error_code))
    codes = {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }
    return _only_errors({name: codes.get(name, ErrorCode.NETWORK_EXCEPTION) for name in partitions})


def _only_errors(errors: dict[TopicPartition, ErrorCode]) -> dict[TopicPartition, ErrorCode]:
    return {name: error for name, error in errors.items() if error is not ErrorCode.NONE}
