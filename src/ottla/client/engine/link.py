"""One connection to one broker: opened at first use, versions negotiated, responses in order."""

from collections import deque
from enum import Enum, auto
from random import Random
from struct import error as StructError
from typing import Any, Protocol

from ottla.client.config import ClientConfig
from ottla.client.engine.outputs import CloseLink, OpenLink, Output, SendOnLink
from ottla.client.engine.tasks import Ask, Task
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    LoginFailed,
    RequestTimedOut,
    Unsendable,
    UnsupportedByBroker,
)
from ottla.model.errors import MalformedRequest
from ottla.wire.apis.api_versions import ApiVersionsResponse
from ottla.wire.codec import UnsupportedVersion
from ottla.wire.connection import ClientSide, VersionsRefused
from ottla.wire.fields import Request, Response
from ottla.wire.login import ClientLogin, LoginRefused, version_of


class LinkState(Enum):
    """The state of a link."""

    CLOSED = auto()
    OPENING = auto()
    GREETING = auto()
    LOGGING_IN = auto()
    READY = auto()


class Home(Protocol):
    """What a link needs of the engine."""

    now_ms: int
    outputs: list[Output]
    random: Random

    def resume(self, task: Task[Any], turn: int, value: Any) -> None:
        """Resume a waiting task with a value."""


class _Waiting:
    """A request, queued or sent, and the task that waits for its response."""

    __slots__ = ("ask", "deadline_ms", "task", "turn")

    def __init__(self, ask: Ask, task: Task[Any], deadline_ms: int) -> None:
        self.ask = ask
        self.task = task
        self.turn = task.turn
        self.deadline_ms = deadline_ms


class Link:
    """A connection to one address. If it is lost, waiting tasks get the error; a new request reopens it."""

    def __init__(self, link_id: int, host: str, port: int, config: ClientConfig, home: Home) -> None:
        self.id = link_id
        self.host = host
        self.port = port
        self.state = LinkState.CLOSED
        self.may_open_at_ms = 0
        self.failures = 0
        """How many attempts to connect have failed in a row."""
        self._opened_at_ms = 0
        self._config = config
        self._home = home
        self._queue: deque[_Waiting] = deque()
        self._conversation: ClientSide[_Waiting | None] = ClientSide(config.client_id)
        """By request: who waits for the response; ``None`` for the link's own requests."""
        self._login: ClientLogin | None = None
        """The login that is under way."""
        self._login_again_ms: int | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def load(self) -> int:
        """How many requests are queued or in flight."""
        return len(self._queue) + len(self._conversation)

    @property
    def deadline_ms(self) -> int | None:
        """The next time at which ``check`` must be called."""
        deadlines = []
        if self.state is LinkState.CLOSED and self._queue:
            deadlines.append(self.may_open_at_ms)
        elif self.state is LinkState.OPENING:
            deadlines.append(self._opened_at_ms + self._config.socket_connection_setup_timeout_ms)
        if (oldest := self._conversation.oldest) is not None:
            deadlines.append(oldest.deadline)
        return min(deadlines, default=None)

    # From the engine

    def request(self, ask: Ask, task: Task[Any]) -> None:
        """Send a request now, or as soon as the link is ready."""
        timeout_ms = self._config.request_timeout_ms if ask.timeout_ms is None else ask.timeout_ms
        waiting = _Waiting(ask, task, self._home.now_ms + timeout_ms)
        if self._login_again_ms is not None and self._home.now_ms >= self._login_again_ms:
            self._log_in()
        if self.state is LinkState.READY:
            self._send(waiting)
        else:
            self._queue.append(waiting)
            if self.state is LinkState.CLOSED and self._home.now_ms >= self.may_open_at_ms:
                self._open()

    def check(self) -> None:
        """Open the link if its backoff is over; close it if a deadline has passed."""
        now_ms = self._home.now_ms
        if self.state is LinkState.CLOSED:
            if self._queue and now_ms >= self.may_open_at_ms:
                self._open()
        elif (
            self.state is LinkState.OPENING
            and now_ms >= self._opened_at_ms + self._config.socket_connection_setup_timeout_ms
        ):
            self.close(ConnectionLost(f"{self.host}:{self.port} did not accept a connection in time"))
        elif (oldest := self._conversation.oldest) is not None and now_ms >= oldest.deadline:
            api = oldest.response.__name__.removesuffix("Response")
            self.close(RequestTimedOut(f"{self.host}:{self.port} did not answer {api}Request in time"))

    def connected(self) -> None:
        """The edge has opened the connection: ask for the broker's versions first."""
        self.state = LinkState.GREETING
        self._greet()

    def frame_came(self, frame: memoryview) -> None:
        """A response arrived; the frame is valid only during the call."""
        try:
            waiting, response = self._conversation.receive(frame)
        except MalformedRequest as malformed:
            self.close(
                ConnectionLost(f"{self.host}:{self.port}: what it sent is not Kafka's protocol: {malformed}")
            )
            return
        if waiting is None:
            self._own_answer_came(response)
        else:
            self._resume(waiting, response)

    def lost(self, reason: str) -> None:
        """The edge lost the connection, or could not open it."""
        self._lose(ConnectionLost(f"{self.host}:{self.port}: {reason}"))

    def close(self, error: ClientError) -> None:
        """Close the link; all waiting tasks get the error."""
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
        self._login = None
        self._login_again_ms = None
        waiting = [*self._conversation.lose(), *self._queue]
        self._queue.clear()
        for request in waiting:
            if request is not None:
                self._resume(request, error)

    def _greet(self) -> None:
        # The machine of a frozen broker still accepts connections, so the link is ready only after an answer.
        limit_ms = min(self._config.request_timeout_ms, self._config.socket_connection_setup_timeout_ms)
        parts = self._conversation.greet(None, self._home.now_ms + limit_ms)
        self._home.outputs.append(SendOnLink(self.id, parts))

    def _own_answer_came(self, response: Any) -> None:
        if self._login is not None:
            self._login_answered(self._login, response)
        else:
            self._greeted(response)

    def _greeted(self, response: ApiVersionsResponse) -> None:
        try:
            if not self._conversation.greeted(response):
                self._greet()
                return
        except VersionsRefused as refused:
            self.close(ConnectionLost(f"{self.host}:{self.port} {refused}"))
            return
        if self._config.login is None:
            self._is_ready()
        else:
            self._log_in()

    def _log_in(self) -> None:
        """Say who we are; what is to be sent meanwhile waits. Requests before it are answered before it."""
        assert self._config.login is not None, "there is somebody to log in"
        self.state = LinkState.LOGGING_IN
        self._login_again_ms = None
        self._login = ClientLogin(self._config.login, lambda: f"{self._home.random.getrandbits(160):x}")
        self._send_login(self._login.first())

    def _send_login(self, request: Request) -> None:
        deadline_ms = self._home.now_ms + self._config.request_timeout_ms
        parts = self._conversation.send(request, version_of(request), None, deadline_ms)
        self._home.outputs.append(SendOnLink(self.id, parts))

    def _login_answered(self, login: ClientLogin, response: Any) -> None:
        try:
            request = login.answered(response)
        except LoginRefused as refused:
            self.close(LoginFailed(f"{self.host}:{self.port}: {refused}"))
            return
        if request is not None:
            self._send_login(request)
            return
        self._login = None
        if login.again_after_ms is not None:
            self._login_again_ms = self._home.now_ms + login.again_after_ms
        self._is_ready()

    def _is_ready(self) -> None:
        self.state = LinkState.READY
        self.failures = 0
        queue, self._queue = self._queue, deque()
        for waiting in queue:
            self._send(waiting)

    def _send(self, waiting: _Waiting) -> None:
        version = self._conversation.version_for(waiting.ask.message, waiting.ask.version_max)
        if version is None:
            name = type(waiting.ask.message).__name__
            text = f"{self.host}:{self.port} has no version of {name} that this client can use"
            self._resume(waiting, UnsupportedByBroker(text))
            return
        try:
            self._transmit(waiting, version)
        except UnsupportedVersion as unsupported:
            self._resume(waiting, UnsupportedByBroker(f"{self.host}:{self.port}: {unsupported}"))
        except (StructError, ValueError) as error:
            text = f"{type(waiting.ask.message).__name__} does not fit into Kafka's protocol: {error}"
            self._resume(waiting, Unsendable(text))

    def _transmit(self, waiting: _Waiting, version: int) -> None:
        message = waiting.ask.message
        if waiting.ask.response is None:
            parts = self._conversation.send_unanswered(message, version)
        else:
            parts = self._conversation.send(message, version, waiting, waiting.deadline_ms)
        self._home.outputs.append(SendOnLink(self.id, parts))
        if waiting.ask.response is None:
            self._resume(waiting, None)

    def _resume(self, waiting: _Waiting, value: Response | ClientError | None) -> None:
        self._home.resume(waiting.task, waiting.turn, value)
