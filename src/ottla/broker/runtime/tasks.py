"""The one scheduler of a broker: a task is a generator that yields what it waits for.

A task reads like blocking code and never blocks. It may wait for a ZooKeeper operation, for several at once,
for time, for whatever calls back, or just let others have their turn::

    def steps() -> Steps[None]:
        found = yield GetData(path)
        yield Pause(100)
        answer = yield Answer(lambda then: link.request(message, 3, then))
        for each in many:
            ...
            yield BREATH

``tasks.spawn(steps(), owner)`` begins it. Its owner hears when it fails: a request is given up, a term ends.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.timers import Timers
from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.zookeeper.ops import Lost, Op

T = TypeVar("T")

SLICE_MS = 20
"""How long a task may keep the loop before others get their turn."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long."""

    ms: int


@dataclass(frozen=True, slots=True)
class Together:
    """All of these operations at once; their results come back as a list, in order."""

    ops: Sequence[Op]


@dataclass(frozen=True, slots=True)
class Answer:
    """Wait for whatever calls back: ``begin`` gets the callback, and the task gets what it is called with."""

    begin: Callable[[Callable[[Any], None]], None]


Wait: TypeAlias = Op | Pause | Together | Answer | None
Steps: TypeAlias = Generator[Wait, Any, T]
"""What a task does: each ``yield`` gives what to wait for, and gets what came of it."""

BREATH: Final = None
"""Wait for nothing: the task may be interrupted here, and is when its slice of time is used up."""


class Owner(Protocol):
    """Whose task it is."""

    def task_failed(self, error: Exception) -> None:
        """The task, or what was to follow it, raised this; afterwards the error goes on to the edge."""


class Task(Generic[T]):
    """Steps under way. An object and no closure, which would hold itself and wait for the collector."""

    __slots__ = ("_is_running", "_owner", "_steps", "_tasks", "_then", "is_over")

    def __init__(
        self, tasks: "Tasks", steps: Steps[T], owner: Owner, then: Callable[[T], None] | None
    ) -> None:
        self._tasks = tasks
        self._steps = steps
        self._owner = owner
        self._then = then
        self._is_running = False
        self.is_over = False

    def cancel(self) -> None:
        """Drop it where it stands; what it waits for is ignored when it comes."""
        if not self.is_over:
            self.is_over = True
            if not self._is_running:
                self._steps.close()

    def __call__(self, result: Any) -> None:
        """What the task waited for is here: go on until it waits again."""
        if self.is_over:
            return
        try:
            self._run(result)
        except Exception as error:
            self.is_over = True
            self._owner.task_failed(error)
            raise

    def _run(self, result: Any) -> None:
        tasks = self._tasks
        clock, send = tasks.clock, self._steps.send
        end_ms = clock.monotonic_ms() + SLICE_MS
        self._is_running = True
        try:
            wait = send(result)
            while wait is BREATH and clock.monotonic_ms() < end_ms:
                wait = send(None)
        except StopIteration as stop:
            self.is_over = True
            if self._then is not None:
                self._then(stop.value)
            return
        finally:
            self._is_running = False
        if self.is_over:  # cancelled by its own step
            self._steps.close()
        else:
            tasks.begin(wait, self)


class Tasks:
    """Begins tasks, and what they wait for."""

    __slots__ = ("_timers", "_zk", "clock")

    def __init__(self, clock: Clock, timers: Timers, zk: ZooKeeper) -> None:
        self.clock = clock
        self._timers = timers
        self._zk = zk

    def spawn(self, steps: Steps[T], owner: Owner, then: Callable[[T], None] | None = None) -> Task[T]:
        """Begin a task; its first steps are taken at once. ``then`` gets what it returns."""
        task = Task(self, steps, owner, then)
        task(None)
        return task

    def begin(self, wait: Wait, resume: Callable[[Any], None]) -> None:
        """Wait for this, then resume."""
        if isinstance(wait, Pause):
            self._timers.after(wait.ms, lambda: resume(None))
        elif wait is BREATH:
            self._timers.after(0, lambda: resume(None))
        elif isinstance(wait, Answer):
            wait.begin(resume)
        elif isinstance(wait, Together):
            self._begin_together(wait.ops, resume)
        else:
            self._zk.submit(wait, resume)

    def _begin_together(self, ops: Sequence[Op], resume: Callable[[Any], None]) -> None:
        results: list[Any] = [None] * len(ops)
        waiting = len(ops)
        if not ops:
            self._timers.after(0, lambda: resume(results))

        def came(index: int, result: Any) -> None:
            nonlocal waiting
            results[index] = result
            waiting -= 1
            if not waiting:
                resume(results)

        for index, op in enumerate(ops):
            self._zk.submit(op, partial(came, index))


class TaskGroup:
    """An owner for tasks that end together: those of a term, a shard, a broker's life."""

    __slots__ = ("_failed", "_live", "_tasks", "is_over")

    def __init__(self, tasks: Tasks, failed: Callable[[Exception], None] | None = None) -> None:
        """``failed`` hears of every task that fails; without it the edge alone does."""
        self._tasks = tasks
        self._failed = failed
        self._live: dict[Task[Any], None] = {}
        self.is_over = False

    def spawn(self, steps: Steps[T], then: Callable[[T], None] | None = None) -> None:
        """Begin a task, unless the group is over."""
        if self.is_over:
            steps.close()
            return
        task = Task(self._tasks, steps, self, then)
        self._live = {each: None for each in self._live if not each.is_over}
        self._live[task] = None
        task(None)

    def cancel(self) -> None:
        """Drop all its tasks where they stand, and begin no more."""
        self.is_over = True
        live, self._live = self._live, {}
        for task in live:
            task.cancel()

    def task_failed(self, error: Exception) -> None:
        if self._failed is not None:
            self._failed(error)


class TaskQueue:
    """Tasks one after another: the next begins when the one before it is over, however it ended."""

    __slots__ = ("_present", "_tasks", "_timers", "_waiting")

    def __init__(self, tasks: Tasks, timers: Timers) -> None:
        self._tasks = tasks
        self._timers = timers
        self._present: Task[None] | None = None
        self._waiting: deque[tuple[Steps[None], Owner]] = deque()

    @property
    def is_empty(self) -> bool:
        return self._present is None and not self._waiting

    def put(self, steps: Steps[None], owner: Owner) -> None:
        """Do this when all that came before is done: at once, if nothing is left of it."""
        is_first = self.is_empty
        self._waiting.append((steps, owner))
        if is_first:
            self._begin()

    def clear(self) -> None:
        """Forget what has not been done, and drop what is being done where it stands."""
        self._waiting.clear()
        if self._present is not None:
            self._present.cancel()

    def _begin(self) -> None:
        if self._waiting:
            steps, owner = self._waiting.popleft()
            self._present = Task(self._tasks, self._then_next(steps), owner, None)
            self._present(None)

    def _then_next(self, steps: Steps[None]) -> Steps[None]:
        try:
            yield from steps
        finally:
            self._present = None
            if self._waiting:
                self._timers.after(0, self._begin)


def persistently(operation: Op) -> Steps[Any]:
    """The result of an operation that may be repeated without harm: until it is not lost."""
    while isinstance(result := (yield operation), Lost):
        yield Pause(100)
    return result
