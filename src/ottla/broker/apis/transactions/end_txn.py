"""EndTxn 0-4: commit or abort; answered when the outcome is stored, before its markers are written."""

from ottla.broker.apis.transactions.outcome import in_version
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.shard import Producer
from ottla.model.errors import ErrorCode
from ottla.wire.apis.end_txn import EndTxnRequest, EndTxnResponse


def handle(node: Node, request: Request, body: EndTxnRequest) -> EndTxnResponse | None:
    host, name = node.transaction_coordinator, body.transactional_id
    found = host.find(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        return EndTxnResponse(error_code=found)

    def answer(error: ErrorCode) -> None:
        request.reply(EndTxnResponse(error_code=in_version(error, request.api_version)))

    shard, number = found
    producer = Producer(body.producer_id, body.producer_epoch)
    effects = shard.end(host.token(answer), name, producer, host.now(), is_commit=body.committed)
    host.perform(number, effects)
    return None
