"""InitProducerId: the producer id and epoch that number an idempotent producer's batches."""

from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import ANY_BROKER, Operation, ask, sleep
from ottla.client.errors import BrokerError, ClientError, TimedOut
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_TIMEOUT_MS = 0x7FFF_FFFF


def obtain_producer_id(engine: Engine, limit_ms: int | None = None) -> Operation[tuple[int, int]]:
    """A new producer id and its epoch. Retriable errors are retried, up to ``limit_ms`` if it is given."""
    began_ms = engine.now_ms
    attempts = 0
    while True:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS)
        attempts += 1
        try:
            response = yield from ask(ANY_BROKER, request, InitProducerIdResponse)
            if response.error_code:
                raise BrokerError(response.error_code, "InitProducerId")
        except ClientError as error:
            if not error.is_retriable:
                raise
            if limit_ms is not None and engine.now_ms - began_ms >= limit_ms:
                raise TimedOut("InitProducerId", limit_ms, error) from error
            yield from sleep(engine.backoff_ms(attempts))
        else:
            return response.producer_id, response.producer_epoch
