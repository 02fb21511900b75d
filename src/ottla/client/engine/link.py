"""One connection to one broker: opened when first used, versions negotiated, answers in order."""

from collections import deque
from enum import Enum, auto
from struct import error as StructError
from typing import Any, Protocol

from ottla.client.config import ClientConfig
from ottla.client.engine.outputs import CloseLink, OpenLink, Output, SendOnLink
from ottla.client.engine.tasks import Ask, Task
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    RequestTimedOut,
    Unsendable,
    UnsupportedByBroker,
)
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.codec import UnsupportedVersion
from ottla.wire.fields import Response
from ottla.wire.headers import decode_response, frame_request, response_correlation_id
from ottla.wire.keys import ApiKey

SOFTWARE_VERSION = "0.1.0"
"""What we tell brokers about ourselves."""

HELLO_VERSION = 3
"""ApiVersions is asked in this version first; an older broker answers in version 0."""

CORRELATION_ID_MAX = 0x7FFF_FFFF


class LinkState(Enum):
    """How far a link is."""

    CLOSED = auto()
    OPENING = auto()
    GREETING = auto()
    READY = auto()


class Home(Protocol):
    """What a link needs of the engine."""

    now_ms: int
    outputs: list[Output]

    def resume(self, task: Task[Any], turn: int, value: Any) -> None:
        """Hand a waiting task what came."""


class _Waiting:
    """A request, queued or sent, and the task that waits for its answer (``None``: the link itself)."""

    __slots__ = ("ask", "correlation_id", "deadline_ms", "task", "turn", "version")

    def __init__(self, ask: Ask, task: Task[Any] | None, deadline_ms: int) -> None:
        self.ask = ask
        self.task = task
        self.turn = task.turn if task is not None else 0
        self.deadline_ms = deadline_ms
        self.version = 0
        self.correlation_id = 0


class Link:
    """A line to one address. When it is lost, all who wait hear so; the next request opens it again."""

    def __init__(self, link_id: int, host: str, port: int, config: ClientConfig, home: Home) -> None:
        self.id = link_id
        self.host = host
        self.port = port
        self.state = LinkState.CLOSED
        self.versions: dict[int, tuple[int, int]] = {}
        self.may_open_at_ms = 0
        self.failures = 0
        """How often in a row no line came about."""
        self._opened_at_ms = 0
        self._config = config
        self._home = home
        self._queue: deque[_Waiting] = deque()
        self._in_flight: deque[_Waiting] = deque()
        self._next_correlation_id = 0

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def load(self) -> int:
        """How many requests wait here."""
        return len(self._queue) + len(self._in_flight)

    @property
    def deadline_ms(self) -> int | None:
        """When ``check`` has something to do."""
        deadlines = []
        if self.state is LinkState.CLOSED and self._queue:
            deadlines.append(self.may_open_at_ms)
        elif self.state is LinkState.OPENING:
            deadlines.append(self._opened_at_ms + self._config.socket_connection_setup_timeout_ms)
        if self._in_flight:
            deadlines.append(self._in_flight[0].deadline_ms)
        return min(deadlines, default=None)

    # From the engine

    def request(self, ask: Ask, task: Task[Any]) -> None:
        """Send this now, or as soon as the line stands."""
        timeout_ms = self._config.request_timeout_ms if ask.timeout_ms is None else ask.timeout_ms
        waiting = _Waiting(ask, task, self._home.now_ms + timeout_ms)
        if self.state is LinkState.READY:
            self._send(waiting)
        else:
            self._queue.append(waiting)
            if self.state is LinkState.CLOSED and self._home.now_ms >= self.may_open_at_ms:
                self._open()

    def check(self) -> None:
        """Open if it is time; give up on what took too long."""
        now_ms = self._home.now_ms
        if self.state is LinkState.CLOSED:
            if self._queue and now_ms >= self.may_open_at_ms:
                self._open()
        elif (
            self.state is LinkState.OPENING
            and now_ms >= self._opened_at_ms + self._config.socket_connection_setup_timeout_ms
        ):
            self.close(ConnectionLost(f"{self.host}:{self.port} did not accept a connection in time"))
        elif self._in_flight and now_ms >= self._in_flight[0].deadline_ms:
            late = type(self._in_flight[0].ask.message).__name__
            self.close(RequestTimedOut(f"{self.host}:{self.port} did not answer {late} in time"))

    def connected(self) -> None:
        """The edge has opened the line: ask first what the broker speaks."""
        self.state = LinkState.GREETING
        self._greet(HELLO_VERSION)

    def frame_came(self, frame: memoryview) -> None:
        """One response; the frame is lent for the call."""
        try:
            self._answer(frame)
        except MalformedRequest as malformed:
            self.close(
                ConnectionLost(f"{self.host}:{self.port}: what it sent is not Kafka's protocol: {malformed}")
            )

    def lost(self, reason: str) -> None:
        """The edge lost the line, or could not open it."""
        self._lose(ConnectionLost(f"{self.host}:{self.port}: {reason}"))

    def close(self, error: ClientError) -> None:
        """Hang up; all who wait hear the error."""
        if self.state is not LinkState.CLOSED:
            self._home.outputs.append(CloseLink(self.id))
        self._lose(error)

    # Inside

    def _open(self) -> None:
        self.state = LinkState.OPENING
        self._opened_at_ms = self._home.now_ms
        self._home.outputs.append(OpenLink(self.id, self.host, self.port))

    def _lose(self, error: ClientError) -> None:
        if self.state is not LinkState.CLOSED:
            if self.state is not LinkState.READY:
                self.failures += 1
            backoff_ms = self._config.reconnect_backoff_ms << min(max(self.failures - 1, 0), 20)
            self.may_open_at_ms = self._home.now_ms + min(backoff_ms, self._config.reconnect_backoff_max_ms)
        self.state = LinkState.CLOSED
        waiting = [*self._in_flight, *self._queue]
        self._in_flight.clear()
        self._queue.clear()
        for request in waiting:
            self._resume(request, error)

    def _greet(self, version: int) -> None:
        hello = ApiVersionsRequest(client_software_name="ottla", client_software_version=SOFTWARE_VERSION)
        ask = Ask(0, hello, ApiVersionsResponse)
        # A frozen broker's machine accepts connections: one stands only when the broker has answered.
        limit_ms = min(self._config.request_timeout_ms, self._config.socket_connection_setup_timeout_ms)
        self._transmit(_Waiting(ask, None, self._home.now_ms + limit_ms), version)

    def _greeted(self, asked_version: int, response: ApiVersionsResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and asked_version > 0:
            known = {row.api_key: row.max_version for row in response.api_keys}
            self._greet(min(asked_version - 1, known.get(ApiKey.API_VERSIONS, 0)))
            return
        if response.error_code:
            self.close(ConnectionLost(f"{self.host}:{self.port} refused ApiVersions: {response.error_code}"))
            return
        self.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        self.state = LinkState.READY
        self.failures = 0
        queue, self._queue = self._queue, deque()
        for waiting in queue:
            self._send(waiting)

    def _send(self, waiting: _Waiting) -> None:
        version = self._version_for(waiting.ask)
        if version is None:
            name = type(waiting.ask.message).__name__
            error = UnsupportedByBroker(f"{self.host}:{self.port} speaks no version of {name} that we do")
            self._resume(waiting, error)
            return
        try:
            self._transmit(waiting, version)
        except UnsupportedVersion as unsupported:
            self._resume(waiting, UnsupportedByBroker(f"{self.host}:{self.port}: {unsupported}"))
        except (StructError, ValueError) as error:
            text = f"{type(waiting.ask.message).__name__} does not fit into Kafka's protocol: {error}"
            self._resume(waiting, Unsendable(text))

    def _version_for(self, ask: Ask) -> int | None:
        spec = ask.message.spec
        assert spec.api_key is not None, "only messages of an API are asked"
        first, last = self.versions.get(spec.api_key, (0, -1))
        version = min(last, spec.versions[1] if ask.version_max is None else ask.version_max)
        return version if version >= max(first, spec.versions[0]) else None

    def _transmit(self, waiting: _Waiting, version: int) -> None:
        number = self._next_correlation_id
        parts = frame_request(waiting.ask.message, version, number, self._config.client_id)
        self._next_correlation_id = 0 if number == CORRELATION_ID_MAX else number + 1
        waiting.version, waiting.correlation_id = version, number
        self._home.outputs.append(SendOnLink(self.id, parts))
        if waiting.ask.response is None:
            self._resume(waiting, None)
        else:
            self._in_flight.append(waiting)

    def _answer(self, frame: memoryview) -> None:
        if not self._in_flight:
            raise MalformedRequest("a response that nobody asked for")
        waiting = self._in_flight[0]
        if response_correlation_id(frame) != waiting.correlation_id:
            raise MalformedRequest("a response out of order")
        response = self._decoded(waiting, frame)
        self._in_flight.popleft()
        if waiting.task is None:
            assert isinstance(response, ApiVersionsResponse), "the link itself only greets"
            self._greeted(waiting.version, response)
        else:
            self._resume(waiting, response)

    def _decoded(self, waiting: _Waiting, frame: memoryview) -> Response:
        assert waiting.ask.response is not None, "a request without a response is never in flight"
        version = waiting.version
        if waiting.task is None and bytes(frame[4:6]) == b"\x00\x23":
            version = 0  # UNSUPPORTED_VERSION is said in the version that every client reads.
        return decode_response(waiting.ask.response, version, frame)[1]

    def _resume(self, waiting: _Waiting, value: Response | ClientError | None) -> None:
        if waiting.task is not None:
            self._home.resume(waiting.task, waiting.turn, value)
