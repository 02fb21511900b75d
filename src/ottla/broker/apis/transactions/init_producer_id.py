"""InitProducerId 0-6: the id and epoch of a producer; with a transactional id, from its coordinator.

Version 6 has two-phase commit (KIP-939). It is advertised where transaction.two.phase.commit.enable is on.
"""

import logging

from ottla.broker.apis.transactions.outcome import in_version
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.shard import Producer
from ottla.coordinator.txn.core import init_refused
from ottla.coordinator.txn.transaction import NO_TIMEOUT_MS
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)

NOTHING = -1
PRODUCER_FENCED_SINCE = 4
REFUSED = "two-phase commit refused: set transaction.two.phase.commit.enable=true on every broker"
REFUSED_NEXT = (
    "two-phase commit refused: brokers that may coordinate the transactional id next would not keep a"
    " prepared transaction (Apache Kafka 3.9, or transaction.two.phase.commit.enable=false): take them out"
    " of the replicas of the id's partition of __transaction_state"
)


def handle(node: Node, request: Request, body: InitProducerIdRequest) -> InitProducerIdResponse | None:
    """Without a transactional id a fresh producer id; while a block is fetched, the client tries again."""
    if (body.producer_id == NOTHING) != (body.producer_epoch == NOTHING):
        return init_refused(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        return _handle_transactional(node, request, body, body.transactional_id)
    producer_id = node.producer_ids.take()
    if producer_id is None:
        return init_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _handle_transactional(
    node: Node, request: Request, body: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse | None:
    host = node.transaction_coordinator
    if not transactional_id:
        return init_refused(ErrorCode.INVALID_REQUEST)
    config = node.config.transactions
    is_two_phase = body.enable_2pc or body.keep_prepared_txn
    if is_two_phase and not config.transaction_two_phase_commit_enable:
        log.warning("%s transactional_id=%s", REFUSED, transactional_id)
        return init_refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    timeout_ms = NO_TIMEOUT_MS if body.enable_2pc else body.transaction_timeout_ms
    if not body.enable_2pc and not 0 < timeout_ms <= config.transaction_max_timeout_ms:
        return init_refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    found = host.find(transactional_id)
    if isinstance(found, ErrorCode):
        return init_refused(found)
    if not body.enable_2pc:
        _initialise(node, request, body, transactional_id, timeout_ms)
        return None

    def looked(unfit: list[BrokerId]) -> None:
        if not unfit:
            _initialise(node, request, body, transactional_id, timeout_ms)
            return
        names = ",".join(map(str, unfit))
        log.warning("%s transactional_id=%s brokers=%s", REFUSED_NEXT, transactional_id, names)
        request.reply(init_refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))

    node.successors.look(TopicPartition(TRANSACTIONS_TOPIC, found[1]), looked)
    return None


def _initialise(
    node: Node, request: Request, body: InitProducerIdRequest, transactional_id: str, timeout_ms: int
) -> None:
    def answer(response: InitProducerIdResponse) -> None:
        error = ErrorCode(response.error_code)
        response.error_code = int(in_version(error, request.api_version, PRODUCER_FENCED_SINCE))
        request.reply(response)

    host = node.transaction_coordinator
    found = host.find(transactional_id)
    if isinstance(found, ErrorCode):
        answer(init_refused(found))
        return
    shard, number = found
    owner = Producer(body.producer_id, body.producer_epoch) if body.producer_id != NOTHING else None
    keeps = body.keep_prepared_txn
    effects = shard.initialise(
        host.token(answer), transactional_id, owner, timeout_ms, host.now(), keeps=keeps
    )
    host.perform(number, effects)
