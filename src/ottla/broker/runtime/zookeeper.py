"""ZooKeeper as the broker uses it: operations go out, answers, watches and sessions come back."""

from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.broker.outputs import Output, SubmitToZooKeeper
from ottla.broker.runtime.call_each import call_each
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

Then: TypeAlias = Callable[[Any], None]

READS = (GetData, Exists, GetChildren, GetAcl, MultiRead, Sync)


class ZooKeeper:
    """Numbers the operations and remembers who waits for which.

    A read that was lost with the connection is asked again by itself, and so is a write that surely was
    not applied. A write that may have been applied comes back as ``Lost``: only its sender knows what
    to look for. Nothing is asked again across the end of a session: then reads come back as ``Lost`` too.
    """

    def __init__(self, outputs: list[Output]) -> None:
        self._outputs = outputs
        self._next_token = 0
        self._pending: dict[int, tuple[int, Op, Then]] = {}
        self._postponed: list[tuple[int, Op, Then]] = []
        self._watchers: dict[str, list[Callable[[WatchEvent], None]]] = {}
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
        """Call this whenever a watch on the path fires. Whoever reads the node sets the watch."""
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
