"""AddOffsetsToTxn 0-4: the partition that keeps a group's offsets joins a transaction."""

from ottla.broker.apis.transactions.outcome import in_version
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.shard import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(node: Node, request: Request, body: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse | None:
    """Neither the group nor the topic need be there yet."""
    host, name = node.transaction_coordinator, body.transactional_id
    found = host.find(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        return AddOffsetsToTxnResponse(error_code=found)

    def answer(error: ErrorCode) -> None:
        request.reply(AddOffsetsToTxnResponse(error_code=in_version(error, request.api_version)))

    shard, number = found
    partition = TopicPartition(OFFSETS_TOPIC, node.group_coordinator.partition_of(body.group_id))
    producer = Producer(body.producer_id, body.producer_epoch)
    effects = shard.add_partitions(host.token(answer), name, producer, [partition], host.now())
    host.perform(number, effects)
    return None
