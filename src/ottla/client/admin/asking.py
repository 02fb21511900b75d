"""Who must be asked: the controller, a group's coordinator, one broker, all, any."""

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

GROUP = 0
SECOND_OPINION_MS = 2_000
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
    """For responses that say nothing of who is to be asked."""
    return ()


def until_done(
    engine: Engine, what: str, timeout_ms: int | None, attempt: Callable[[int], Operation[T]]
) -> Operation[T]:
    """Try again, with fresh metadata, as long as the error may pass and there is time.

    ``attempt`` gets the time that is left, in milliseconds.
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
    """The active controller's answer; ``codes`` are those that may say it is another broker by now."""

    def attempt(left_ms: int) -> Operation[R]:
        yield from _know_brokers(engine, left_ms)
        controller = engine.metadata.controller_id
        if controller not in engine.metadata.brokers:
            raise ConnectionLost("the cluster has no controller at the moment")
        answer = yield from ask(controller, message, response)
        _raise_if_moved(codes(answer))
        return answer

    return until_done(engine, type(message).__name__, timeout_ms, attempt)


def ask_target(
    engine: Engine,
    target: Target,
    message: Request,
    response: type[R],
    timeout_ms: int | None = None,
    codes: Callable[[R], Iterable[int]] = no_codes,
) -> Operation[R]:
    """One broker's answer, or any broker's; ``codes`` are those that may say it cannot answer yet."""

    def attempt(left_ms: int) -> Operation[R]:
        if target is not ANY_BROKER:
            yield from _know_brokers(engine, left_ms)
        answer = yield from ask(target, message, response)
        _raise_if_moved(codes(answer))
        return answer

    return until_done(engine, type(message).__name__, timeout_ms, attempt)


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
    """What the controller says, if there is one and it answers soon: a second opinion.

    Brokers hear of a new topic one after the other; the controller has answered for it.
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
    timeout_ms: int | None = None,
) -> Operation[R]:
    """The answer of the broker that coordinates a group."""

    def attempt(left_ms: int) -> Operation[R]:
        yield from _know_brokers(engine, left_ms)
        request = FindCoordinatorRequest(key=key, key_type=GROUP)
        found = yield from ask(
            ANY_BROKER, request, FindCoordinatorResponse, version_max=_LAST_VERSION_WITH_ONE_KEY
        )
        if found.error_code:
            raise BrokerError(found.error_code, found.error_message)
        if found.node_id not in engine.metadata.brokers:
            raise ConnectionLost(f"the address of broker {found.node_id} is not known")
        answer = yield from ask(found.node_id, message, response)
        _raise_if_moved(codes(answer))
        return answer

    return until_done(engine, type(message).__name__, timeout_ms, attempt)


def _raise_if_moved(codes: Iterable[int]) -> None:
    for code in codes:
        if code in _MOVED:
            raise BrokerError(code)


def raise_for(code: int, detail: str | None = None) -> None:
    """Raise an error code that is one."""
    if code:
        raise BrokerError(code, detail)
