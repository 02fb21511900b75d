"""Operations as generators: they yield what they wait for, and the engine resumes them with the result.

An operation reads like blocking code and runs under any edge, because it never waits itself::

    def offsets(engine, broker) -> Operation[ListOffsetsResponse]:
        yield from sleep(100)
        return (yield from ask(broker, request, ListOffsetsResponse))
"""

import heapq
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ottla.client.errors import ClientClosed, ClientError
from ottla.wire.fields import Request, Response

T = TypeVar("T")
R = TypeVar("R", bound=Response)


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Any broker: a connected one if there is one."""


ANY_BROKER = AnyBroker()


@dataclass(frozen=True, slots=True)
class BrokerLane:
    """A further connection to a broker: for requests that wait long and would hold up others."""

    broker: int
    lane: str


Target: TypeAlias = int | AnyBroker | BrokerLane
"""A broker by its id, or any."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait for a broker's response; ``ConnectionLost`` or ``UnsupportedByBroker`` may be raised instead."""

    target: Target
    message: Request
    response: type[Response] | None
    """``None`` for a request that has no response (Produce with acks 0): done when it is sent."""
    version_max: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for a time."""

    ms: int


class Signal:
    """Tasks can wait for a signal; ``fire`` resumes them all."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[tuple[Task[Any], int]] = []


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until a signal fires, or for a time. Resumes with whether it fired."""

    signal: Signal
    timeout_ms: int | None = None


Step: TypeAlias = Ask | Sleep | WaitFor
Operation: TypeAlias = Generator[Step, Any, T]


def ask(
    target: Target,
    message: Request,
    response: type[R],
    *,
    version_max: int | None = None,
    timeout_ms: int | None = None,
) -> Operation[R]:
    """The broker's response."""
    answer: R = yield Ask(target, message, response, version_max, timeout_ms)
    return answer


def sleep(ms: int) -> Operation[None]:
    """A pause."""
    yield Sleep(ms)


def wait_for(signal: Signal, timeout_ms: int | None = None) -> Operation[bool]:
    """Whether the signal fired in time."""
    fired: bool = yield WaitFor(signal, timeout_ms)
    return fired


class Task(Generic[T]):
    """A running operation. ``turn`` counts its waits, so that a late result of an old wait is recognized."""

    __slots__ = ("done", "error", "is_done", "operation", "turn", "value")

    def __init__(self, operation: Operation[T]) -> None:
        self.operation = operation
        self.turn = 0
        self.is_done = False
        self.value: T | None = None
        self.error: ClientError | None = None
        self.done = Signal()

    def result(self) -> T:
        """What the operation returned, or raise what it raised."""
        assert self.is_done, "the operation still runs"
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def _closed() -> ClientClosed:
    return ClientClosed("the client was closed")


class Scheduler:
    """Runs tasks, one step at a time, and wakes them at their deadlines."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.is_closed = False
        self._live: dict[Task[Any], None] = {}
        self._ready: deque[tuple[Task[Any], int, Any]] = deque()
        self._timers: list[tuple[int, int, Task[Any], int]] = []
        self._timer_count = 0

    def spawn(self, operation: Operation[T]) -> Task[T]:
        """Begin an operation; its first step is taken in the next ``run``."""
        task = Task(operation)
        self._live[task] = None
        self._ready.append((task, 0, None))
        return task

    def join(self, task: Task[T]) -> Operation[T]:
        """Wait for another task's result."""
        while not task.is_done:
            yield WaitFor(task.done)
        return task.result()

    def cancel(self, task: Task[Any]) -> None:
        """End a task where it waits."""
        if not task.is_done:
            task.operation.close()
            self._finish(task, None, ClientClosed("the operation was cancelled"))

    def end_all(self) -> None:
        """Raise ``ClientClosed`` in every task, now and whenever one waits again."""
        self.is_closed = True
        for task in self._live:
            self.resume(task, task.turn, _closed())
        self.run()

    def resume(self, task: Task[Any], turn: int, value: Any) -> None:
        """Give a task what it waited for, or raise an exception in it. A result of an old wait is dropped."""
        if task.turn == turn and not task.is_done:
            self._ready.append((task, turn, value))

    def fire(self, signal: Signal) -> None:
        """Resume all tasks that wait for a signal."""
        waiting, signal.waiting = signal.waiting, []
        for task, turn in waiting:
            self.resume(task, turn, True)

    def run(self) -> None:
        """Take steps until every task waits for something outside."""
        ready = self._ready
        while ready:
            task, turn, value = ready.popleft()
            if task.turn == turn and not task.is_done:
                self._step(task, value)

    def advance(self, now_ms: int) -> None:
        """Set the clock and wake the tasks whose deadlines have passed."""
        self.now_ms = max(self.now_ms, now_ms)
        timers = self._timers
        while timers and timers[0][0] <= self.now_ms:
            _, _, task, turn = heapq.heappop(timers)
            self.resume(task, turn, False)

    def catch_up(self, now_ms: int) -> None:
        """Set the clock without checking deadlines: responses may wait in sockets."""
        self.now_ms = max(self.now_ms, now_ms)

    def next_deadline_ms(self) -> int | None:
        """The next deadline of a task."""
        timers = self._timers
        while timers and (timers[0][2].is_done or timers[0][2].turn != timers[0][3]):
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def _step(self, task: Task[Any], value: Any) -> None:
        task.turn += 1
        try:
            if isinstance(value, ClientError):
                step = task.operation.throw(value)
            else:
                step = task.operation.send(value)
        except StopIteration as stop:
            self._finish(task, stop.value, None)
        except ClientError as error:
            self._finish(task, None, error)
        else:
            self._wait(task, step)

    def _finish(self, task: Task[Any], value: Any, error: ClientError | None) -> None:
        task.is_done = True
        self._live.pop(task, None)
        task.value, task.error = value, error
        self.fire(task.done)

    def _wait(self, task: Task[Any], step: Step) -> None:
        if self.is_closed:
            self.resume(task, task.turn, _closed())
            return
        match step:
            case Ask():
                self.on_ask(task, step)
            case Sleep():
                self.wake_at(task, self.now_ms + step.ms)
            case WaitFor():
                step.signal.waiting = [w for w in step.signal.waiting if w[0].turn == w[1]]
                step.signal.waiting.append((task, task.turn))
                if step.timeout_ms is not None:
                    self.wake_at(task, self.now_ms + step.timeout_ms)

    def wake_at(self, task: Task[Any], deadline_ms: int) -> None:
        """Resume the task with ``False`` at a time, if it still waits."""
        self._timer_count += 1
        heapq.heappush(self._timers, (deadline_ms, self._timer_count, task, task.turn))

    def on_ask(self, task: Task[Any], step: Ask) -> None:
        """Send a task's request; the engine does."""
        raise NotImplementedError
