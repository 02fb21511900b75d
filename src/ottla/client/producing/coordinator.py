"""Requests to one coordinator inside a transaction, repeated as the table of errors says."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.client.admin.asking import find_coordinator
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import BrokerLane, Operation, ask, sleep
from ottla.client.errors import (
    AbortableError,
    BrokerError,
    ClientClosed,
    ClientError,
    ConnectionLost,
    TimedOut,
)
from ottla.client.producing.transaction_errors import Course, Step, as_raised, course_after, decisive
from ottla.model.errors import ErrorCode
from ottla.wire.fields import Request, Response

R = TypeVar("R", bound=Response)

CONCURRENT_MS = 20
"""The first pause while the transaction before is being completed: that takes little time."""

LANE = "transactions"
"""A connection of its own: on the one of Produce, requests would wait behind batches."""


class Coordinator:
    """The coordinator of a transactional id or a group."""

    def __init__(self, engine: Engine, key: str, key_type: int) -> None:
        self._engine = engine
        self._key = key
        self._key_type = key_type
        self._lane: BrokerLane | None = None
        self.is_in_doubt = False
        """Whether an answer was lost: the request may still arrive, behind those that came later."""

    def ask(
        self,
        step: Step,
        request: Request,
        response: type[R],
        codes: Callable[[R], Iterable[int]],
        limit_ms: int | None = None,
        *,
        version_max: int | None = None,
        is_wanted: Callable[[ClientError], bool] = lambda _: True,
    ) -> Operation[R]:
        """An answer without an error; else ``TransactionFailed`` or, after ``limit_ms``, ``TimedOut``.

        ``is_wanted`` says whether to try again after an error that allows it.
        """
        began_ms = self._engine.now_ms
        attempts = 0
        while True:
            asked = Step.FIND
            try:
                lane = self._lane = self._lane or (yield from self._find())
                asked = step
                answer = yield from ask(lane, request, response, version_max=version_max)
                error: ClientError | None = decisive(step, codes(answer))
                if error is None:
                    return answer
            except ClientClosed:
                raise
            except ClientError as failure:
                error = failure
            self.is_in_doubt |= asked is step and not isinstance(error, BrokerError)
            course = course_after(asked, error)
            if course in (Course.ABORT, Course.STOP):
                raise as_raised(asked, error)
            if course is Course.FIND_AGAIN:
                self._lane = None
            if not is_wanted(error):
                raise AbortableError(asked.value, error)
            if limit_ms is not None and self._engine.now_ms - began_ms >= limit_ms:
                raise TimedOut(step.value, limit_ms, error)
            attempts += 1
            yield from sleep(self._pause_ms(error, attempts))

    def _find(self) -> Operation[BrokerLane]:
        found = yield from find_coordinator(self._key, self._key_type)
        engine = self._engine
        if found.node_id not in engine.metadata.brokers:
            yield from engine.refresh(engine.now_ms + engine.config.request_timeout_ms)
        if found.node_id not in engine.metadata.brokers:
            raise ConnectionLost(f"the address of broker {found.node_id} is not known")
        return BrokerLane(found.node_id, LANE)

    def _pause_ms(self, error: ClientError, attempts: int) -> int:
        pause_ms = self._engine.backoff_ms(attempts)
        if isinstance(error, BrokerError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return min(CONCURRENT_MS * attempts, pause_ms)
        return pause_ms
