"""AllocateProducerIds 0: the controller gives a broker a block of producer ids that nobody had before."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import ProducerIdBlock, decode_producer_id_block, encode_producer_id_block
from ottla.zookeeper.ops import Create, Data, DataSet, Failed, GetData, Lost, SetData, ZkCode

BLOCK_SIZE = 1_000
LAST_BLOCK = 2**63 - BLOCK_SIZE
"""Where the last block of ids begins that a number can hold."""


def handle(node: Node, request: Request, body: AllocateProducerIdsRequest) -> None:
    """A controller that is still reading who is registered lets the broker wait, as Kafka's queue does."""

    def then(is_serving: bool) -> None:
        error = _why_not(node, body) if is_serving else ErrorCode.NOT_CONTROLLER
        if error is ErrorCode.NONE:
            _allocate_for(node, request, BrokerId(body.broker_id))
        else:
            request.reply(AllocateProducerIdsResponse(error_code=error))

    node.controller.when_serving(then)


def _why_not(node: Node, body: AllocateProducerIdsRequest) -> ErrorCode:
    """The broker must be registered, and speak of its present life."""
    epoch = node.controller.broker_epoch(BrokerId(body.broker_id))
    if epoch is None:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    return ErrorCode.NONE if epoch == body.broker_epoch else ErrorCode.STALE_BROKER_EPOCH


def _allocate_for(node: Node, request: Request, broker: BrokerId) -> None:
    def then(block: ProducerIdBlock | None) -> None:
        if block is None:
            request.reply(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            request.reply(
                AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=BLOCK_SIZE)
            )

    node.tasks.spawn(allocate(broker), request, then)


def allocate(broker: BrokerId) -> Steps[ProducerIdBlock | None]:
    """The next block, written onto the version that was read; None when that cannot be done."""
    while True:
        found = yield from persistently(GetData(paths.LATEST_PRODUCER_ID_BLOCK))
        if isinstance(found, Failed) and found.code is ZkCode.NO_NODE:
            yield from persistently(Create(paths.LATEST_PRODUCER_ID_BLOCK))
            continue
        if not isinstance(found, Data):
            return None
        try:
            latest = decode_producer_id_block(found.data)
        except MalformedZnode:
            return None
        first = 0 if latest is None else latest.last + 1
        if not 0 <= first <= LAST_BLOCK:
            return None
        block = ProducerIdBlock(broker, first, first + BLOCK_SIZE - 1)
        result = yield SetData(
            paths.LATEST_PRODUCER_ID_BLOCK, encode_producer_id_block(block), found.stat.version
        )
        if isinstance(result, DataSet):
            return block
        # A write that was lost may have been applied; that block is nobody's then, and the next is taken.
        if not isinstance(result, Lost) and result.code is not ZkCode.BAD_VERSION:
            return None
