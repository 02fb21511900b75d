"""One request of a client: who asked what, and the one way to answer it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.outputs import Buffer
from ottla.wire.headers import frame_response, with_throttle_time
from ottla.wire.keys import ApiKey

if TYPE_CHECKING:
    from ottla.broker.access.access import Access
    from ottla.broker.clients.connections import Connection
    from ottla.security.principal import Principal

_TOLD_IN_FRONT = (ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS)
"""Answers that are encoded elsewhere, and begin with their throttle time."""


class Request:
    """A request that came in; it holds its place in the connection's order until it is answered.

    Answer it once, now or later: ``reply``, ``reply_nothing`` or ``hang_up``.
    """

    __slots__ = (
        "access",
        "amend",
        "answer",
        "api_key",
        "api_version",
        "began_s",
        "came_s",
        "client_id",
        "connection",
        "correlation_id",
        "hang_up_reason",
        "mutation_wait_until_ms",
        "size",
    )

    def __init__(
        self,
        connection: "Connection",
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        size: int,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size = size
        self.access: Access | None = None
        """What its client may do; None where everybody may do everything."""
        self.amend: Callable[[Any], Any] | None = None
        """Puts into the answer what was refused for lack of rights, and takes out what must not be seen."""
        self.came_s = 0.0
        """When it came, where somebody measures that."""
        self.began_s = 0.0
        """When its handling began, where quotas measure that; while it is parked what it took, below zero."""
        self.mutation_wait_until_ms = 0
        """Until when its client has to wait for the topics and partitions that it changed."""
        self.answer: list[Buffer] | None = None
        """Kept until all requests before this one are answered."""
        self.hang_up_reason: str | None = None
        """Why the connection ends with this answer, if it does."""

    @property
    def listener(self) -> str:
        """The name of the listener the client came through."""
        return self.connection.listener

    @property
    def principal(self) -> "Principal":
        """Who asks."""
        return self.connection.principal

    @property
    def client_host(self) -> str:
        return self.connection.host

    @property
    def is_abandoned(self) -> bool:
        """The client has gone: an answer would reach nobody."""
        return self.connection.is_closed

    def reply(self, message: Any) -> None:
        """Answer with this message, in the version that was asked."""
        if self.amend is not None:
            message = self.amend(message)
        quotas = self.connection.quotas
        if quotas is not None and (wait_ms := quotas.charge(self)):
            if "throttle_time_ms" in message.__struct_fields__:
                message.throttle_time_ms = wait_ms
            self.connection.mute(wait_ms)
        self._answer(frame_response(message, self.api_version, self.correlation_id))

    def reply_encoded(self, parts: list[Buffer]) -> None:
        """Answer with a whole frame that was encoded elsewhere."""
        quotas = self.connection.quotas
        if quotas is not None and (wait_ms := quotas.charge(self)):
            if self.api_key in _TOLD_IN_FRONT:
                parts = with_throttle_time(parts, self.api_key, self.api_version, wait_ms)
            self.connection.mute(wait_ms)
        self._answer(parts)

    def _answer(self, parts: list[Buffer]) -> None:
        assert self.answer is None, "a request is answered once"
        self.answer = parts
        self.connection.answered(self)

    def reply_nothing(self) -> None:
        """The client expects no answer (Produce with acks=0): only give up the place in the order."""
        quotas = self.connection.quotas
        if quotas is not None and (wait_ms := quotas.charge(self, is_silent=True)):
            self.connection.mute(wait_ms)
        self._answer([])

    def give_up_place(self) -> None:
        """What is no request of the client's has stood long enough."""
        self._answer([])

    def hang_up(self, reason: str) -> None:
        """Close the connection as soon as all requests before this one have been answered."""
        self.hang_up_reason = reason
        self.connection.is_doomed = True
        self._answer([])

    def task_failed(self, error: Exception) -> None:
        """A mistake of ours: whoever still waits for the answer is hung up on, and does not wait for ever."""
        if self.answer is None:
            self.hang_up("internal error")
