"""Requests to the controller, a group's coordinator, one broker, all brokers, any broker."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import ANY_BROKER, Operation, Target, ask
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, TimedOut
from ottla.model.errors import ErrorCode
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.fields import Request, Response

R = TypeVar("R", bound=Response)
T = TypeVar("T")

SECOND_OPINION_MS = 2_000
GROUP, TRANSACTION = 0, 1
"""What a coordinator may be asked for."""

_LAST_VERSION_WITH_ONE_KEY = 3

_MOVED = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def no_codes(_: Response) -> Iterable[int]:
    """For responses whose error codes do not say that another broker must be asked."""
    return ()


def until_done(
    engine: Engine, what: str, timeout_ms: int | None, attempt: Callable[[int], Operation[T]]
) -> Operation[T]:
    """Try again with fresh metadata while the error is retriable and there is time.

    ``attempt`` gets the remaining time in milliseconds.
    """
    limit_ms = engine.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
    deadline_ms = engine.now_ms + limit_ms
    attempts = 0
    while True:
        try:
            return (yield from attempt(max(1, deadline_ms - engine.now_ms)))
        except ClientError as error:
            if not error.is_retriable:
                raise
            cause = error
        attempts += 1
        yield from engine.pause(attempts, deadline_ms)
        if not (yield from engine.refresh(deadline_ms)):
            raise TimedOut(what, limit_ms, cause)


def ask_controller(
    engine: Engine,
    message: Request,
    response: type[R],
    codes: Callable[[R], Iterable[int]],
    timeout_ms: int | None = None,
) -> Operation[R]:
    """The active controller's answer; ``codes`` are those that may say that it has moved."""

    def find(left_ms: int) -> Operation[Target]:
        yield from _know_brokers(engine, left_ms)
        controller = engine.metadata.controller_id
        if controller not in engine.metadata.brokers:
            raise ConnectionLost("the cluster has no controller at the moment")
        return controller

    return _ask_found(engine, find, message, response, codes, timeout_ms)


def ask_target(
    engine: Engine,
    target: Target,
    message: Request,
    response: type[R],
    timeout_ms: int | None = None,
    codes: Callable[[R], Iterable[int]] = no_codes,
) -> Operation[R]:
    """One broker's answer, or any broker's; ``codes`` are those that may say it cannot answer yet."""

    def find(left_ms: int) -> Operation[Target]:
        if target is not ANY_BROKER:
            yield from _know_brokers(engine, left_ms)
        return target

    return _ask_found(engine, find, message, response, codes, timeout_ms)


def ask_any(
    engine: Engine, message: Request, response: type[R], timeout_ms: int | None = None
) -> Operation[R]:
    """Any broker's answer."""
    return ask_target(engine, ANY_BROKER, message, response, timeout_ms)


def ask_all(
    engine: Engine,
    message: Request,
    response: type[R],
    timeout_ms: int | None = None,
    codes: Callable[[R], Iterable[int]] = no_codes,
) -> Operation[dict[int, R]]:
    """Every broker's answer, by broker; ``codes`` are those that may say it cannot answer yet."""
    yield from know_brokers(engine, timeout_ms)
    tasks = {
        broker: engine.spawn(ask_target(engine, broker, message, response, timeout_ms, codes))
        for broker in engine.metadata.brokers
    }
    answers: dict[int, R] = {}
    for broker, task in tasks.items():
        answers[broker] = yield from engine.join(task)
    return answers


def hear_controller(
    engine: Engine, controller: int, message: Request, response: type[R]
) -> Operation[R | None]:
    """The controller's answer, or ``None`` if there is no controller or it does not answer soon.

    A broker may not know a new topic yet; the controller does.
    """
    if controller < 0:
        return None
    try:
        return (yield from ask_target(engine, controller, message, response, SECOND_OPINION_MS))
    except ClientError:
        return None


def know_brokers(engine: Engine, timeout_ms: int | None = None) -> Operation[None]:
    """Wait until the cluster's brokers are known."""
    return until_done(engine, "Metadata", timeout_ms, lambda left_ms: _know_brokers(engine, left_ms))


def _know_brokers(engine: Engine, left_ms: int) -> Operation[None]:
    """Ask for metadata if there is none yet."""
    if not engine.metadata.version and not (yield from engine.refresh(engine.now_ms + left_ms)):
        raise engine.metadata_error or ConnectionLost("no broker has answered")


def ask_coordinator(
    engine: Engine,
    key: str,
    message: Request,
    response: type[R],
    codes: Callable[[R], Iterable[int]],
    *,
    key_type: int = GROUP,
    timeout_ms: int | None = None,
) -> Operation[R]:
    """The answer of the broker that coordinates a group, or a transactional id."""

    def find(left_ms: int) -> Operation[Target]:
        yield from _know_brokers(engine, left_ms)
        found = yield from find_coordinator(key, key_type)
        if found.node_id not in engine.metadata.brokers:
            raise ConnectionLost(f"the address of broker {found.node_id} is not known")
        return found.node_id

    return _ask_found(engine, find, message, response, codes, timeout_ms)


def find_coordinator(key: str, key_type: int = GROUP) -> Operation[FindCoordinatorResponse]:
    """What a broker says of a coordinator; one attempt."""
    request = FindCoordinatorRequest(key=key, key_type=key_type)
    found = yield from ask(
        ANY_BROKER, request, FindCoordinatorResponse, version_max=_LAST_VERSION_WITH_ONE_KEY
    )
    raise_for(found.error_code, found.error_message)
    return found


def _ask_found(
    engine: Engine,
    find: Callable[[int], Operation[Target]],
    message: Request,
    response: type[R],
    codes: Callable[[R], Iterable[int]],
    timeout_ms: int | None,
) -> Operation[R]:
    """Find the broker to ask and ask it, again and again while it has moved or cannot answer yet."""

    def attempt(left_ms: int) -> Operation[R]:
        target = yield from find(left_ms)
        answer = yield from ask(target, message, response)
        for code in codes(answer):
            if code in _MOVED:
                raise BrokerError(code)
        return answer

    return until_done(engine, type(message).__name__, timeout_ms, attempt)


def raise_for(code: int, detail: str | None = None) -> None:
    """Raise ``BrokerError`` unless the code is 0."""
    if code:
        raise BrokerError(code, detail)
