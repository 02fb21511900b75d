"""Where the node hands in its ZooKeeper operations, and where answers, watches and sessions come back."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ottla.broker.callbacks import call_each
from ottla.broker.outputs import Output, SubmitToZooKeeper
from ottla.broker.timers import Timers
from ottla.zookeeper.ops import (
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    Lost,
    MultiRead,
    Op,
    Result,
    Sync,
    WatchEvent,
)

if TYPE_CHECKING:
    from ottla.broker.request import Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Among steps: wait this long before the next one."""

    ms: int


T = TypeVar("T")
Then: TypeAlias = Callable[[Any], None]
Steps: TypeAlias = Generator[Op | Pause, Any, T]
"""Operations one after the other: each ``yield`` gives one and gets its result."""

READS = (GetData, Exists, GetChildren, GetAcl, MultiRead, Sync)


class ZkDesk:
    """Numbers the operations and remembers who waits for which.

    A read that was lost with the connection is asked again by itself, and so is a write that surely was
    not applied. A write that may have been applied comes back as ``Lost``: only who sent it knows what
    to look for. Nothing is asked again across the end of a session: then reads come back as ``Lost`` too.
    """

    __slots__ = (
        "_next_token",
        "_outputs",
        "_pending",
        "_postponed",
        "_timers",
        "_watchers",
        "asker",
        "is_connected",
        "session_id",
        "session_number",
    )

    def __init__(self, outputs: list[Output], timers: Timers) -> None:
        self._outputs = outputs
        self._timers = timers
        self._next_token = 0
        self._pending: dict[int, tuple[int, Op, Then]] = {}
        self._postponed: list[tuple[int, Op, Then]] = []
        self._watchers: dict[str, list[Callable[[WatchEvent], None]]] = {}
        self.asker: Request | None = None
        """The request that is being handled: it is given up should steps fail that are begun for it."""
        self.is_connected = False
        self.session_id = 0
        self.session_number = 0
        """Counts the sessions that ended, so that a late answer can be told from a present one."""

    def submit(self, operation: Op, then: Then) -> None:
        """Run one operation; ``then`` gets its result, in the order of submission."""
        self._send(self.session_number, operation, then)

    def _send(self, session: int, operation: Op, then: Then) -> None:
        self._next_token += 1
        self._pending[self._next_token] = (session, operation, then)
        self._outputs.append(SubmitToZooKeeper(self._next_token, operation))

    def run(self, steps: Steps[T], then: Callable[[T], None] | None = None) -> None:
        """Run operations that depend on each other; ``then`` gets what the generator returns."""
        _Walk(self, steps, then)(None)

    def pause(self, ms: int, then: Callable[[], None]) -> None:
        """Go on after a while."""
        self._timers.after(ms, then)

    def on_result(self, token: int, result: Result) -> None:
        """The edge has the answer of an operation."""
        session, operation, then = self._pending.pop(token)
        may_repeat = isinstance(result, Lost) and (isinstance(operation, READS) or not result.maybe_applied)
        if not may_repeat or session != self.session_number:
            then(result)
        elif self.is_connected:
            self._send(session, operation, then)
        else:
            self._postponed.append((session, operation, then))

    def connected(self, session_id: int) -> None:
        """The session is usable; what was lost with the last connection is asked again."""
        self.is_connected = True
        self.session_id = session_id
        postponed, self._postponed = self._postponed, []
        for _, operation, then in postponed:
            self.submit(operation, then)

    def suspended(self) -> None:
        """The connection is gone; the session may still live."""
        self.is_connected = False

    def expired(self) -> None:
        """The session is over: what waited for its connection will never be asked."""
        self.is_connected = False
        self.session_number += 1
        postponed, self._postponed = self._postponed, []
        call_each((then for _, _, then in postponed), Lost(maybe_applied=False))

    def watch(self, path: str, handler: Callable[[WatchEvent], None]) -> None:
        """Call this whenever a watch on the path fires. Arming the watch is the reader's business."""
        self._watchers.setdefault(path, []).append(handler)

    def unwatch(self, path: str, handler: Callable[[WatchEvent], None]) -> None:
        """Do not call this for the path any more."""
        handlers = self._watchers.get(path, [])
        if handler in handlers:
            handlers.remove(handler)
        if not handlers:
            self._watchers.pop(path, None)

    def on_watch(self, event: WatchEvent) -> None:
        """A watch fired."""
        call_each(list(self._watchers.get(event.path, ())), event)


def persistently(operation: Op) -> Steps[Any]:
    """The result of an operation that may be repeated without harm: until it is not lost."""
    while isinstance(result := (yield operation), Lost):
        yield Pause(100)
    return result


class _Walk:
    """Steps under way. An object and no closure, which would hold itself and wait for the collector."""

    __slots__ = ("_asker", "_desk", "_steps", "_then")

    def __init__(self, desk: ZkDesk, steps: Steps[Any], then: Callable[[Any], None] | None) -> None:
        self._asker = desk.asker
        self._desk = desk
        self._steps = steps
        self._then = then

    def __call__(self, result: Any) -> None:
        try:
            self._go_on(result)
        except Exception:
            if self._asker is not None:
                self._asker.fail()
            raise

    def _go_on(self, result: Any) -> None:
        try:
            wanted = self._steps.send(result)
        except StopIteration as stop:
            if self._then is not None:
                self._then(stop.value)
            return
        if isinstance(wanted, Pause):
            self._desk.pause(wanted.ms, lambda: self(None))
        else:
            self._desk.submit(wanted, self)
