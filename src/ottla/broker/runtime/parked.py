"""Requests that wait: for the high watermark, for data, for followers, or until their time is up.

The turn: while events are handled, partitions only note what changed. At its end producers hear of their
records, then the parked fetches of followers are looked at again, then those of consumers.
"""

from bisect import bisect_left
from typing import Protocol

from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.timers import Timers

GRAINS_MS = (
    (200, 10),
    (5_000, 50),
    (60_000, 500),
    (600_000, 5_000),
    (6_000_000, 50_000),
    (60_000_000, 500_000),
)
"""How coarse deadlines are: waits up to 200 ms end within 10 ms, up to 5 s within 50 ms, and so on. However
long clients wait, no more than about a thousand moments lie ahead."""
GRAIN_MAX_MS = 5_000_000
_LIMITS = tuple(limit for limit, _ in GRAINS_MS)
_GRAINS = (*(grain for _, grain in GRAINS_MS), GRAIN_MAX_MS)


class Client(Protocol):
    """Whose request is parked."""

    is_closed: bool


class Parked(Protocol):
    """A request without an answer yet."""

    deadline_ms: int
    """The moment its time is up, as ``Deadlines`` rounded it; 0 when it does not wait."""

    @property
    def connection(self) -> Client | None:
        """Whose request it is; None for the broker's own."""

    def expire(self) -> None:
        """The time is up: answer with what there is."""

    def abandon(self) -> None:
        """The client has gone: let go of everything."""


class Awaited(Protocol):
    """A partition for whose replicas producers wait."""

    def settle(self) -> None:
        """Answer those whose records are committed by now, or whose leader is gone."""


class Reader(Protocol):
    """Whoever fetches, with a parked request."""

    replica_id: int

    def wake(self) -> None:
        """Look again whether there is something to answer."""


class Deadlines:
    """When parked requests give up. Deadlines are rounded up and shared, so that a load of short waits
    costs one timer per moment. An answered request leaves nothing behind but its moment."""

    __slots__ = ("_by_client", "_clock", "_moments", "_timers")

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._moments: dict[int, dict[Parked, None]] = {}
        self._by_client: dict[Client, dict[Parked, None]] = {}

    def add(self, parked: Parked, delay_ms: int) -> None:
        """Let it expire after this long, a little later at most."""
        grain_ms = _GRAINS[bisect_left(_LIMITS, delay_ms)]
        now_ms = self._clock.monotonic_ms()
        moment = -(-(now_ms + delay_ms) // grain_ms) * grain_ms
        waiting = self._moments.get(moment)
        if waiting is None:
            waiting = self._moments[moment] = {}
            self._timers.after(moment - now_ms, lambda: self._reached(moment))
        waiting[parked] = None
        parked.deadline_ms = moment
        connection = parked.connection
        if connection is not None:
            of_client = self._by_client.get(connection)
            if of_client is None:
                if connection.is_closed:
                    return  # nobody will tell of its end any more
                of_client = self._by_client[connection] = {}
            of_client[parked] = None

    def remove(self, parked: Parked) -> None:
        """It was answered, or nobody wants the answer."""
        waiting = self._moments.get(parked.deadline_ms)
        if waiting is not None:
            waiting.pop(parked, None)
        connection = parked.connection
        if connection is not None and (of_client := self._by_client.get(connection)) is not None:
            of_client.pop(parked, None)

    def client_lost(self, connection: Client) -> None:
        """Let go of all that this client waited for."""
        for parked in list(self._by_client.pop(connection, ())):
            self.remove(parked)
            parked.abandon()

    def count(self) -> int:
        """How many wait."""
        return sum(map(len, self._moments.values()))

    def _reached(self, moment: int) -> None:
        """One that raises does not take the others along: they expire with the next tick."""
        waiting = self._moments.get(moment, {})
        try:
            for parked in list(waiting):
                if parked in waiting:
                    self.remove(parked)
                    parked.expire()
        finally:
            if waiting:
                self._timers.after(0, lambda: self._reached(moment))
            else:
                self._moments.pop(moment, None)

    def expire_all(self) -> None:
        """The broker stops: expire all."""
        for moment in sorted(self._moments):
            self._reached(moment)


class Waiting:
    """All parked requests, and what the current turn has changed for them."""

    __slots__ = ("_committed", "_consumers", "_followers", "_timers", "deadlines")

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._timers = timers
        self.deadlines = Deadlines(clock, timers)
        self._committed: dict[Awaited, None] = {}
        self._followers: dict[Reader, None] = {}
        self._consumers: dict[Reader, None] = {}

    # --- notes of the turn ----------------------------------------------------------------------

    def note_committed(self, partition: Awaited) -> None:
        """Its high watermark moved, or its leadership ended: producers may be answered."""
        self._committed[partition] = None

    def note_readable(self, reader: Reader) -> None:
        """A parked fetch may have something to answer now."""
        if reader.replica_id >= 0:
            self._followers[reader] = None
        else:
            self._consumers[reader] = None

    # --- the end of the turn --------------------------------------------------------------------

    def settle_producers(self) -> None:
        """Tell producers what became of their records. Also done in the middle of a follower's
        fetch, whose word it is that commits them. One that raises does not take the others along."""
        while self._committed:
            committed, self._committed = self._committed, {}
            left = iter(committed)
            try:
                for partition in left:
                    partition.settle()
            except BaseException:
                self._committed.update(dict.fromkeys(left))
                self._go_on_soon()
                raise

    def end_turn(self) -> None:
        """Answer what became ready: producers, then followers, then consumers."""
        if self._committed:
            self.settle_producers()
        while self._followers:
            readers, self._followers = self._followers, {}
            self._wake(readers)
        while self._consumers:
            readers, self._consumers = self._consumers, {}
            self._wake(readers)

    def _wake(self, readers: dict[Reader, None]) -> None:
        """One that raises does not take the others along: they are woken in the next turn."""
        left = iter(readers)
        try:
            for reader in left:
                reader.wake()
        except BaseException:
            for reader in left:
                self.note_readable(reader)
            self._go_on_soon()
            raise

    def _go_on_soon(self) -> None:
        """Ask for a tick: it brings the next turn."""
        self._timers.after(0, lambda: None)

    def on_client_lost(self, connection: Client) -> None:
        """Forget what that client waits for."""
        self.deadlines.client_lost(connection)

    def stop(self) -> None:
        """The broker stops: answer every parked request with what there is."""
        self.end_turn()
        self.deadlines.expire_all()
