"""InitProducerId 0-5: an id for an idempotent producer. Transactions are not coordinated here yet."""

import logging
from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)


def handle(node: "Node", request: Request, body: InitProducerIdRequest) -> InitProducerIdResponse:
    """A fresh id with epoch 0; while a block is fetched, the client tries again."""
    if body.transactional_id is not None:
        return _refuse_transactional(request, body.transactional_id)
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    producer_id = node.producer_ids.take()
    if producer_id is None:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1, producer_epoch=-1
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refuse_transactional(request: Request, transactional_id: str) -> InitProducerIdResponse:
    """A final error: one that may be retried would be, for ever."""
    if not transactional_id:
        error = ErrorCode.INVALID_REQUEST
    else:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        log.warning(
            "transactions are not coordinated by this broker transactional_id=%s client=%s",
            transactional_id,
            request.client_host,
        )
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
