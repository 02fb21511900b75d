"""Connections to the other brokers: one ordered line per broker and purpose, opened when first used."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.broker.callbacks import call_each
from ottla.broker.outputs import CloseLink, OpenLink, SendOnLink
from ottla.broker.timers import Timer
from ottla.model.errors import MalformedRequest
from ottla.model.ids import BrokerId
from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.fields import Response
from ottla.wire.headers import decode_response, frame_request
from ottla.wire.keys import ApiKey

if TYPE_CHECKING:
    from ottla.broker.node import Node

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 1_000


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The request has no answer and will have none; it may or may not have reached the peer."""

    reason: str


Then: TypeAlias = Callable[[Any], None]
"""Gets the response, or ``LinkLost``."""


@cache
def response_type(api_key: ApiKey) -> type[Response]:
    """The class of an API's answers."""
    return message_classes(api_key)[1]


class _Sent:
    """A request on its way."""

    __slots__ = ("correlation_id", "deadline_ms", "response", "then", "version")

    def __init__(
        self, correlation_id: int, response: Any, version: int, then: Then, deadline_ms: int
    ) -> None:
        self.correlation_id = correlation_id
        self.response = response
        self.version = version
        self.then = then
        self.deadline_ms = deadline_ms


class PeerLink:
    """One line to one broker. Requests are sent in order; answers come in order.

    The line opens with the first request. When it is lost, every request without an answer gets
    ``LinkLost``; the next request opens it again, after a pause that grows with each failure.
    """

    __slots__ = (
        "_failures",
        "_in_flight",
        "_may_connect",
        "_next_correlation_id",
        "_node",
        "_queue",
        "_watchdog",
        "address",
        "broker",
        "client_id",
        "id",
        "is_connected",
        "is_opening",
        "lane",
        "negotiates",
        "peer_versions",
        "request_timeout_ms",
    )

    def __init__(
        self, node: "Node", link_id: int, broker: BrokerId, lane: str, client_id: str, negotiates: bool
    ) -> None:
        self._node = node
        self.id = link_id
        self.broker = broker
        self.lane = lane
        self.client_id = client_id
        self.negotiates = negotiates
        self.address: tuple[str, int] | None = None
        """Where to connect; None asks the metadata for the inter-broker endpoint each time."""
        self.request_timeout_ms = node.config.connections.request_timeout_ms
        self.peer_versions: dict[int, tuple[int, int]] | None = None
        """What the peer serves, once asked (only on lines that negotiate)."""
        self.is_connected = False
        self.is_opening = False
        self._queue: deque[tuple[Any, int, Then]] = deque()
        self._in_flight: deque[_Sent] = deque()
        self._next_correlation_id = 0
        self._failures = 0
        self._may_connect: Timer | None = None
        self._watchdog: Timer | None = None

    @property
    def in_flight(self) -> int:
        """How many requests wait, sent or not."""
        return len(self._queue) + len(self._in_flight)

    def request(self, message: Any, version: int, then: Then) -> None:
        """Send this; ``then`` gets the response or ``LinkLost``, never inside this call.

        On a line that negotiates, ``version`` is the highest to use; the peer's own limit may lower it.
        """
        if self._is_usable:
            self._send(message, version, then)
            return
        self._queue.append((message, version, then))
        if not self.is_connected:
            self._open_soon()

    @property
    def _is_usable(self) -> bool:
        return self.is_connected and (not self.negotiates or self.peer_versions is not None)

    def _open_soon(self) -> None:
        if self.is_opening or (self._may_connect is not None and self._may_connect.is_pending):
            return
        pause_ms = 0
        if self._failures:
            pause_ms = min(RECONNECT_BACKOFF_MS << min(self._failures - 1, 10), RECONNECT_BACKOFF_MAX_MS)
        self._may_connect = self._node.timers.after(pause_ms, self._open)

    def _open(self) -> None:
        address = self.address or self._node.inter_broker_address(self.broker)
        if address is None:
            self._failures += 1
            self._lose(f"broker {self.broker} has no known address")
            return
        self.is_opening = True
        self._node.outputs.append(OpenLink(self.id, *address))

    def _send(self, message: Any, version: int, then: Then) -> None:
        api_key = ApiKey(message.spec.api_key)
        if self.peer_versions is not None:
            highest = self.peer_versions.get(api_key, (0, version))[1]
            version = min(version, highest)
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        deadline_ms = self._node.clock.monotonic_ms() + self.request_timeout_ms
        self._in_flight.append(_Sent(correlation_id, response_type(api_key), version, then, deadline_ms))
        if self._watchdog is None:
            self._watchdog = self._node.timers.after(self.request_timeout_ms, self._check_deadline)
        parts = frame_request(message, version, correlation_id, self.client_id)
        self._node.outputs.append(SendOnLink(self.id, parts))

    def connected(self) -> None:
        """The edge has opened the line."""
        self.is_opening = False
        self.is_connected = True
        if self.negotiates:
            hello = ApiVersionsRequest(client_software_name="ottla", client_software_version="0.1.0")
            self._send(hello, 3, self._versions_came)
        else:
            self._flush()

    def _versions_came(self, response: ApiVersionsResponse | LinkLost) -> None:
        if isinstance(response, LinkLost):
            return
        if response.error_code:
            self.close(f"the peer does not tell its versions: error {response.error_code}")
            return
        self.peer_versions = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
        self._flush()

    def _flush(self) -> None:
        self._failures = 0
        queue, self._queue = self._queue, deque()
        for message, version, then in queue:
            self._send(message, version, then)

    def frame_came(self, frame: memoryview) -> None:
        """One answer; the frame is lent for the call."""
        if not self._in_flight:
            self.close("an answer that nobody asked for")
            return
        sent = self._in_flight[0]
        try:
            correlation_id, response = decode_response(sent.response, sent.version, frame)
        except MalformedRequest as malformed:
            self.close(f"malformed answer: {malformed}")
            return
        if correlation_id != sent.correlation_id:
            self.close(f"answer {correlation_id} came, {sent.correlation_id} was next")
            return
        self._in_flight.popleft()
        sent.then(response)

    def _check_deadline(self) -> None:
        """One timer a line, not one a request: a fetcher sends thousands a second."""
        self._watchdog = None
        if not self._in_flight:
            return
        left_ms = self._in_flight[0].deadline_ms - self._node.clock.monotonic_ms()
        if left_ms > 0:
            self._watchdog = self._node.timers.after(left_ms, self._check_deadline)
        else:
            self.close(f"no answer within {self.request_timeout_ms} ms")

    def lost(self, reason: str) -> None:
        """The edge lost the line, or could not open it."""
        self._failures += 1
        self._lose(reason)

    def close(self, reason: str) -> None:
        """Hang up; the requests without an answer are lost, the next one opens the line again."""
        if self.is_connected or self.is_opening:
            self._node.outputs.append(CloseLink(self.id))
        if self._may_connect is not None:
            self._may_connect.cancel()
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        self.is_connected = False
        self.is_opening = False
        self.peer_versions = None
        sent, self._in_flight = self._in_flight, deque()
        queued, self._queue = self._queue, deque()
        waiting = [request.then for request in sent] + [then for _, _, then in queued]
        call_each(waiting, LinkLost(reason))


class PeerLinks:
    """The node's lines to its peers, by broker and lane (what the line is for)."""

    __slots__ = ("_by_id", "_by_purpose", "_next_id", "_node")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._by_id: dict[int, PeerLink] = {}
        self._by_purpose: dict[tuple[BrokerId, str], PeerLink] = {}
        self._next_id = 0

    def get(
        self, broker: BrokerId, lane: str, *, client_id: str | None = None, negotiates: bool = False
    ) -> PeerLink:
        """The line to that broker for that purpose; made, not yet opened, when there is none."""
        link = self._by_purpose.get((broker, lane))
        if link is None:
            self._next_id += 1
            name = str(self._node.broker_id) if client_id is None else client_id
            link = PeerLink(self._node, self._next_id, broker, lane, name, negotiates)
            self._by_id[link.id] = link
            self._by_purpose[broker, lane] = link
        return link

    def drop(self, link: PeerLink, reason: str) -> None:
        """Close the line and forget it; ``get`` makes a fresh one."""
        self._by_id.pop(link.id, None)
        self._by_purpose.pop((link.broker, link.lane), None)
        link.close(reason)

    def close_all(self, reason: str) -> None:
        """The node stops: nobody needs an answer any more."""
        for link in list(self._by_id.values()):
            self.drop(link, reason)

    def on_connected(self, link_id: int) -> None:
        link = self._by_id.get(link_id)
        if link is not None and link.is_opening:
            link.connected()

    def on_frame(self, link_id: int, frame: memoryview) -> None:
        link = self._by_id.get(link_id)
        if link is not None and link.is_connected:
            link.frame_came(frame)

    def on_lost(self, link_id: int, reason: str) -> None:
        link = self._by_id.get(link_id)
        if link is not None and (link.is_connected or link.is_opening):
            link.lost(reason)
