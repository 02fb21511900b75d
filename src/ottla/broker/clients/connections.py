"""The clients' connections: requests are handled and answered in their order, and no client is owed too much.

As in Kafka a request is held back until all before it are answered: whoever sends a commit and, behind it,
asks for the offset, gets the one that was committed. Only produce requests overlap: they are appended in
their order, and each waits for its own replicas.
"""

from collections import Counter, deque
from typing import Protocol

from ottla.broker.clients.request import Request
from ottla.broker.outputs import Buffer, Close, Output, PauseReading, ResumeReading, TakeHeld, Write
from ottla.broker.quotas.enforcer import ClientQuotas
from ottla.broker.runtime.meters import RequestMeter
from ottla.broker.runtime.timers import Timer, Timers
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.sasl.server_login import ServerLogin
from ottla.wire.keys import ApiKey

OWED_REQUESTS_MAX = 512
"""How many unanswered requests one connection may have before no more is read from it."""

OWED_BYTES_MAX = 128 * 1024 * 1024
"""How many bytes of unanswered requests one connection may have before no more is read from it."""

_NO_API = -1
_PRODUCE_KEY = ApiKey.PRODUCE.to_bytes(2, "big")


PLAIN_MAX = 64
PLAIN_ENDS_MAX = 4
"""How many beginnings of plain requests are known of one connection, and of how many lengths."""

NUMBER_END = 8
"""Where API, version and number of a request end."""


class PlainCase(Protocol):
    """The short way for requests that differ in little."""

    def serve(self, connection: "Connection", frame: memoryview) -> bool:
        """Whether the request was served; if not, nothing has been done."""


class Connection:
    """One client. ``owed`` are its requests without an answer sent, in the order they came, and ``held`` are
    those behind them that nobody has looked at yet."""

    __slots__ = (
        "_is_paused",
        "_mute",
        "_outputs",
        "_shown",
        "held",
        "host",
        "id",
        "is_closed",
        "is_doomed",
        "is_privileged",
        "learns",
        "listener",
        "login",
        "meter",
        "owed",
        "owed_bytes",
        "plain",
        "plain_ends",
        "quotas",
    )

    def __init__(
        self,
        connection_id: int,
        listener: str,
        host: str,
        outputs: list[Output],
        is_privileged: bool = False,
        meter: RequestMeter | None = None,
        principal: Principal = ANONYMOUS,
    ) -> None:
        self.id = connection_id
        self.listener = listener
        self.host = host
        self.is_privileged = is_privileged
        """The listener is the control plane's own."""
        self.owed: deque[Request] = deque()
        self.held: deque[bytearray] = deque()
        self.owed_bytes = 0
        self.is_closed = False
        self.is_doomed = False
        """It will be closed as soon as what came before is answered; nothing more is taken from it."""
        self.login: ServerLogin | None = None
        """How its client says who it is; None where nobody asks."""
        self.meter = meter
        self.learns = True
        """Its requests are looked at for plain ones."""
        self.plain: dict[bytes, PlainCase] = {}
        """Who serves the requests that begin so; beginnings are counted from behind the number."""
        self.plain_ends: tuple[int, ...] = ()
        """Where the beginnings end."""
        self.quotas: ClientQuotas | None = None
        """Counts what the client uses; None while no quota is set."""
        self._outputs = outputs
        self._mute: Mute | None = None
        self._is_paused = False
        self._shown = principal

    def accept(self, request: Request) -> None:
        """A request takes its place; past the limits nothing more is read until it goes down."""
        if self.meter is not None:
            self.meter.came(request)
        self.owed.append(request)
        self.owed_bytes += request.size
        if len(self.owed) > OWED_REQUESTS_MAX or self.owed_bytes > OWED_BYTES_MAX:
            self._pause()

    def learn_plain(self, beginning: bytes, case: "PlainCase") -> None:
        """Requests that begin so have a short way from now on. A client that writes them differently from
        us, or to more partitions than are worth the memory, is served in the long way."""
        if beginning in self.plain or len(self.plain) >= PLAIN_MAX or len(self.plain_ends) >= PLAIN_ENDS_MAX:
            self.learns = False
            return
        self.plain[beginning] = case
        end = NUMBER_END + len(beginning)
        if end not in self.plain_ends:
            self.plain_ends += (end,)

    def must_wait(self, frame: Buffer) -> bool:
        """Whether a request has to wait until others of this connection are answered."""
        return bool(self.held) or not self._is_next(frame)

    def _is_next(self, frame: Buffer) -> bool:
        owed = self.owed
        return not owed or (owed[-1].api_key == ApiKey.PRODUCE and frame[:2] == _PRODUCE_KEY)

    def hold(self, frame: Buffer) -> None:
        """Keep a request for later, and read no more before it is handled."""
        self.held.append(bytearray(frame))
        self.owed_bytes += len(frame)
        self._pause()

    def next_held(self) -> bytearray | None:
        """The first of those that were kept, if it need not wait any longer."""
        if not self.held or not self._is_next(self.held[0]):
            return None
        frame = self.held.popleft()
        self.owed_bytes -= len(frame)
        self._resume()
        return frame

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._outputs.append(PauseReading(self.id))

    def answered(self, request: Request) -> None:
        """If it is the first in line, send it together with the answers behind it that are ready."""
        owed = self.owed
        if self.is_closed or not owed or owed[0] is not request:
            return
        parts: list[Buffer] = []
        while owed and (answer := owed[0].answer) is not None:
            done = owed.popleft()
            self.owed_bytes -= done.size
            if self.meter is not None and done.api_key != _NO_API:
                self.meter.answered(done, sum(map(len, answer)))
            parts += answer
            if done.hang_up_reason is not None:
                self._write(parts)
                self.close(done.hang_up_reason)
                return
        self._write(parts)
        if self.held and self._is_next(self.held[0]):
            self._outputs.append(TakeHeld(self.id))
        self._resume()

    def _resume(self) -> None:
        if not self._is_paused or self.held:
            return
        if len(self.owed) <= OWED_REQUESTS_MAX // 2 and self.owed_bytes <= OWED_BYTES_MAX // 2:
            self._is_paused = False
            self._outputs.append(ResumeReading(self.id))

    def mute(self, wait_ms: int) -> None:
        """Handle nothing more of this client for so long: it waits behind a request that is answered then."""
        assert self.quotas is not None, "only quotas mute"
        if self._mute is None or self._mute.is_over:
            self._mute = Mute(self, self.quotas.timers)
            self.owed.append(self._mute.request)
        self._mute.until(wait_ms)

    def turn_away(self, wait_ms: int, timers: Timers) -> None:
        """The client's address comes too often: hear nothing from it, and hang up only after a while."""
        self.is_doomed = True
        self._outputs.append(PauseReading(self.id))
        timers.after(wait_ms, lambda: self.close("the quota of connections of its address is exceeded"))

    @property
    def principal(self) -> Principal:
        """Who the client is."""
        return self._shown if self.login is None else self.login.principal

    def write_bare(self, parts: list[Buffer]) -> None:
        """Send what is no answer to a request: a token of the oldest kind of login."""
        self._write(parts)

    def _write(self, parts: list[Buffer]) -> None:
        """Answers that follow each other in one turn leave in one piece."""
        if not parts:
            return
        last = self._outputs[-1] if self._outputs else None
        if type(last) is Write and last.connection == self.id:
            last.parts += parts
        else:
            self._outputs.append(Write(self.id, parts))

    def close(self, reason: str) -> None:
        """Hang up now; what was written before still goes out."""
        if not self.is_closed:
            self.lost()
            self._outputs.append(Close(self.id, reason))

    def lost(self) -> None:
        """The connection has ended, whoever ended it."""
        self.is_closed = True
        self.owed.clear()
        self.held.clear()
        self.owed_bytes = 0


class Mute:
    """Stands in the connection's line for a while, so that whatever comes behind it must wait."""

    __slots__ = ("_timer", "_timers", "request")

    def __init__(self, connection: Connection, timers: Timers) -> None:
        self.request = Request(connection, _NO_API, 0, 0, None, 0)
        self._timers = timers
        self._timer: Timer | None = None

    @property
    def is_over(self) -> bool:
        return self.request.answer is not None

    def until(self, wait_ms: int) -> None:
        """Stand at least so long from now."""
        deadline_ms = 0 if self._timer is None else self._timer.deadline_ms
        timer = self._timers.after(wait_ms, self._end)
        if timer.deadline_ms <= deadline_ms:
            timer.cancel()
        else:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = timer

    def _end(self) -> None:
        self.request.give_up_place()


class Connections:
    """All clients of the node, by the numbers the edge gave them."""

    __slots__ = ("_by_id", "_guarded", "_outputs", "_privileged_listener", "_quotas", "meter")

    def __init__(self, outputs: list[Output], privileged_listener: str | None) -> None:
        self._by_id: dict[int, Connection] = {}
        self._guarded: dict[int, Connection] = {}
        self._outputs = outputs
        self._privileged_listener = privileged_listener
        self._quotas: ClientQuotas | None = None
        self.meter: RequestMeter | None = None
        """Times the requests of connections that come from now on."""

    def __len__(self) -> int:
        return len(self._by_id) + len(self._guarded)

    def by_listener(self) -> Counter[str]:
        """How many are open at each listener that has any."""
        return Counter(each.listener for each in (*self._by_id.values(), *self._guarded.values()))

    def get(self, connection_id: int) -> Connection | None:
        """A connection whose requests are served as they come: asking for one costs nothing more."""
        return self._by_id.get(connection_id)

    def guarded(self, connection_id: int) -> Connection | None:
        """A connection whose requests are served only if its login lets them through."""
        return self._guarded.get(connection_id)

    def guard(self, connection: Connection, is_guarded: bool) -> None:
        """From now on ask its login before each of its requests, or no longer."""
        into, out_of = (self._guarded, self._by_id) if is_guarded else (self._by_id, self._guarded)
        if out_of.pop(connection.id, None) is not None:
            into[connection.id] = connection

    def connected(
        self, connection_id: int, listener: str, host: str, principal: Principal = ANONYMOUS
    ) -> Connection:
        """A client came in through that listener."""
        privileged = listener == self._privileged_listener
        connection = Connection(
            connection_id, listener, host, self._outputs, privileged, self.meter, principal
        )
        connection.quotas = self._quotas
        self._by_id[connection_id] = connection
        return connection

    def enforce(self, quotas: ClientQuotas) -> None:
        """From now on count what clients use, of all connections."""
        self._quotas = quotas
        for connection in (*self._by_id.values(), *self._guarded.values()):
            connection.quotas = quotas

    def lost(self, connection_id: int) -> Connection | None:
        """The edge says that the client has gone."""
        connection = self._by_id.pop(connection_id, None) or self._guarded.pop(connection_id, None)
        if connection is not None:
            connection.lost()
        return connection
