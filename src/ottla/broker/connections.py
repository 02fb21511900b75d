"""The clients' connections: replies leave in the order of their requests, and no client is owed too much."""

from collections import deque

from ottla.broker.meters import RequestMeter
from ottla.broker.outputs import Buffer, Close, Output, PauseReading, ResumeReading, Write
from ottla.broker.request import Request

OWED_REQUESTS_MAX = 512
"""How many unanswered requests one connection may have before no more is read from it."""

OWED_BYTES_MAX = 128 * 1024 * 1024
"""How many bytes of unanswered requests one connection may have before no more is read from it."""


class Connection:
    """One client. ``owed`` are its requests without an answer sent, in the order they came."""

    __slots__ = (
        "_is_paused",
        "_meter",
        "_outputs",
        "client_software",
        "host",
        "id",
        "is_closed",
        "is_doomed",
        "is_privileged",
        "listener",
        "owed",
        "owed_bytes",
    )

    def __init__(
        self,
        connection_id: int,
        listener: str,
        host: str,
        outputs: list[Output],
        is_privileged: bool = False,
        meter: RequestMeter | None = None,
    ) -> None:
        self.id = connection_id
        self.listener = listener
        self.host = host
        self.is_privileged = is_privileged
        """The listener is the control plane's own."""
        self.client_software: tuple[str, str] | None = None
        self.owed: deque[Request] = deque()
        self.owed_bytes = 0
        self.is_closed = False
        self.is_doomed = False
        """It will be closed as soon as what came before is answered; nothing more is taken from it."""
        self._outputs = outputs
        self._meter = meter
        self._is_paused = False

    def accept(self, request: Request) -> None:
        """A request takes its place; past the limits nothing more is read until it goes down."""
        if self._meter is not None:
            self._meter.came(request)
        self.owed.append(request)
        self.owed_bytes += request.size
        if not self._is_paused and (len(self.owed) > OWED_REQUESTS_MAX or self.owed_bytes > OWED_BYTES_MAX):
            self._is_paused = True
            self._outputs.append(PauseReading(self.id))

    def answered(self, request: Request) -> None:
        """If it stands at the head, send it together with the ready ones behind it."""
        owed = self.owed
        if self.is_closed or not owed or owed[0] is not request:
            return
        parts: list[Buffer] = []
        while owed and (answer := owed[0]._answer) is not None:
            done = owed.popleft()
            self.owed_bytes -= done.size
            if self._meter is not None:
                self._meter.answered(done, sum(map(len, answer)))
            parts += answer
            if done._hang_up_reason is not None:
                self._write(parts)
                self.close(done._hang_up_reason)
                return
        self._write(parts)
        if self._is_paused and len(owed) <= OWED_REQUESTS_MAX // 2 and self.owed_bytes <= OWED_BYTES_MAX // 2:
            self._is_paused = False
            self._outputs.append(ResumeReading(self.id))

    def _write(self, parts: list[Buffer]) -> None:
        if parts:
            self._outputs.append(Write(self.id, parts))

    def close(self, reason: str) -> None:
        """Hang up now; what was written before still goes out."""
        if not self.is_closed:
            self.lost()
            self._outputs.append(Close(self.id, reason))

    def lost(self) -> None:
        """The client has gone, by its will or by ours."""
        self.is_closed = True
        self.owed.clear()
        self.owed_bytes = 0


class Connections:
    """All clients of the node, by the numbers the edge gave them."""

    __slots__ = ("_by_id", "_outputs", "_privileged_listener", "meter")

    def __init__(self, outputs: list[Output], privileged_listener: str | None) -> None:
        self._by_id: dict[int, Connection] = {}
        self._outputs = outputs
        self._privileged_listener = privileged_listener
        self.meter: RequestMeter | None = None
        """Times the requests of connections that come from now on."""

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, connection_id: int) -> Connection | None:
        return self._by_id.get(connection_id)

    def connected(self, connection_id: int, listener: str, host: str) -> Connection:
        """A client came in through that listener."""
        privileged = listener == self._privileged_listener
        connection = Connection(connection_id, listener, host, self._outputs, privileged, self.meter)
        self._by_id[connection_id] = connection
        return connection

    def lost(self, connection_id: int) -> Connection | None:
        """The edge says that the client has gone."""
        connection = self._by_id.pop(connection_id, None)
        if connection is not None:
            connection.lost()
        return connection

    def owed_requests(self) -> int:
        """How many requests still wait for their answer, over all clients."""
        return sum(len(connection.owed) for connection in self._by_id.values())
