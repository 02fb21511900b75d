"""Connections to the other brokers: one ordered line per broker and purpose, opened when first used."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.broker.outputs import CloseLink, OpenLink, Output, SendOnLink
from ottla.broker.runtime.call_each import call_each
from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.timers import Timer, Timers
from ottla.model.errors import MalformedRequest
from ottla.model.ids import BrokerId
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.wire.apis.api_versions import ApiVersionsResponse
from ottla.wire.connection import ClientSide, VersionsRefused
from ottla.wire.fields import Request
from ottla.wire.login import ClientLogin, LoginRefused, version_of

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 1_000


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The request has no answer and will have none; it may or may not have reached the peer."""

    reason: str


Then: TypeAlias = Callable[[Any], None]
"""Gets the response, or ``LinkLost``."""

Address: TypeAlias = tuple[str, int]


class PeerLink:
    """One line to one broker. Requests are sent in order; answers come in order.

    The line opens with the first request. When it is lost, every request without an answer gets
    ``LinkLost``; the next request opens it again, after a pause that grows with each failure.
    """

    def __init__(
        self, links: "PeerLinks", link_id: int, broker: BrokerId, lane: str, client_id: str, negotiates: bool
    ) -> None:
        self._links = links
        self.id = link_id
        self.broker = broker
        self.lane = lane
        self.negotiates = negotiates
        """Asks the peer which versions it serves, and stays within them."""
        self.address: Address | None = None
        """Where to connect; None asks the metadata for the inter-broker endpoint each time."""
        self.request_timeout_ms = links.request_timeout_ms
        self.login = links.login
        """As whom we come, if the other side's listener asks."""
        self.listener = links.listener
        self.is_connected = False
        self.is_ready = False
        """Connected, logged in and told the versions, where that is wanted: requests may go out."""
        self.is_opening = False
        self._queue: deque[tuple[Any, int, Then]] = deque()
        self._conversation: ClientSide[Then] = ClientSide(client_id)
        self._failures = 0
        self._may_connect: Timer | None = None
        self._watchdog: Timer | None = None
        self._under_way: ClientLogin | None = None
        self._login_again_ms: int | None = None

    @property
    def client_id(self) -> str | None:
        return self._conversation.client_id

    @property
    def in_flight(self) -> int:
        """How many requests wait, sent or not."""
        return len(self._queue) + len(self._conversation)

    def request(self, message: Any, version: int, then: Then) -> None:
        """Send this; ``then`` gets the response or ``LinkLost``, never inside this call.

        On a line that negotiates, ``version`` is the highest to use; the peer's own limit may lower it.
        """
        if self.is_ready and self._login_again_ms is not None:
            self._login_if_due(self._login_again_ms)
        if self.is_ready:
            self._send(message, version, then)
            return
        self._queue.append((message, version, then))
        if not self.is_connected:
            self._open_soon()

    def _open_soon(self) -> None:
        if self.is_opening or (self._may_connect is not None and self._may_connect.is_pending):
            return
        pause_ms = 0
        if self._failures:
            pause_ms = min(RECONNECT_BACKOFF_MS << min(self._failures - 1, 10), RECONNECT_BACKOFF_MAX_MS)
        self._may_connect = self._links.timers.after(pause_ms, self._open)

    def _open(self) -> None:
        address = self.address or self._links.address_of(self.broker)
        if address is None:
            self._failures += 1
            self._lose(f"broker {self.broker} has no known address")
            return
        self.is_opening = True
        self._links.outputs.append(OpenLink(self.id, *address, self.listener))

    def _send(self, message: Any, version: int, then: Then) -> None:
        if self.negotiates:
            # A peer that speaks no version of it hangs up: then the request is lost like any other.
            common = self._conversation.version_for(message, version)
            version = version if common is None else common
        parts = self._conversation.send(message, version, then, self._watched_deadline())
        self._links.outputs.append(SendOnLink(self.id, parts))

    def _watched_deadline(self) -> int:
        """When a request that is sent now must be answered; the watchdog runs from here on."""
        if self._watchdog is None:
            self._watchdog = self._links.timers.after(self.request_timeout_ms, self._check_deadline)
        return self._links.clock.monotonic_ms() + self.request_timeout_ms

    def connected(self) -> None:
        """The edge has opened the line."""
        self.is_opening = False
        self.is_connected = True
        if self.login is not None:
            self._log_in(self.login)
        else:
            self._logged_in()

    def _logged_in(self) -> None:
        if self.negotiates and self._conversation.versions is None:
            self._greet()
        else:
            self._flush()

    # ---- who we are

    def _log_in(self, login: SaslLogin) -> None:
        """Say who we are; what is to be sent meanwhile waits. Requests before it are answered before it."""
        self.is_ready = False
        self._login_again_ms = None
        self._under_way = ClientLogin(login, self._links.make_nonce)
        self._send_login(self._under_way.first())

    def _login_if_due(self, due_ms: int) -> None:
        if self.login is not None and self._links.clock.monotonic_ms() >= due_ms:
            self._log_in(self.login)

    def _send_login(self, request: Request) -> None:
        version = version_of(request)
        parts = self._conversation.send(request, version, self._login_answered, self._watched_deadline())
        self._links.outputs.append(SendOnLink(self.id, parts))

    def _login_answered(self, response: Any) -> None:
        login = self._under_way
        if isinstance(response, LinkLost) or login is None:
            return
        try:
            request = login.answered(response)
        except LoginRefused as refused:
            self._failures += 1
            self.close(f"broker {self.broker} refuses our login: {refused}")
            return
        if request is not None:
            self._send_login(request)
            return
        self._under_way = None
        if login.again_after_ms is not None:
            self._login_again_ms = self._links.clock.monotonic_ms() + login.again_after_ms
        self._logged_in()

    def _greet(self) -> None:
        parts = self._conversation.greet(self._versions_came, self._watched_deadline())
        self._links.outputs.append(SendOnLink(self.id, parts))

    def _versions_came(self, response: ApiVersionsResponse | LinkLost) -> None:
        if isinstance(response, LinkLost):
            return
        try:
            if self._conversation.greeted(response):
                self._flush()
            else:
                self._greet()
        except VersionsRefused as refused:
            self.close(f"the peer {refused}")

    def _flush(self) -> None:
        self._failures = 0
        self.is_ready = True
        queue, self._queue = self._queue, deque()
        for message, version, then in queue:
            self._send(message, version, then)

    def frame_came(self, frame: memoryview) -> None:
        """One answer; the frame is lent for the call."""
        try:
            then, response = self._conversation.receive(frame)
        except MalformedRequest as malformed:
            self.close(f"malformed answer: {malformed}")
            return
        then(response)

    def _check_deadline(self) -> None:
        """One timer a line, not one a request: a fetcher sends thousands a second."""
        self._watchdog = None
        oldest = self._conversation.oldest
        if oldest is None:
            return
        left_ms = oldest.deadline - self._links.clock.monotonic_ms()
        if left_ms > 0:
            self._watchdog = self._links.timers.after(left_ms, self._check_deadline)
        else:
            self.close(f"no answer within {self.request_timeout_ms} ms")

    def lost(self, reason: str) -> None:
        """The edge lost the line, or could not open it."""
        self._failures += 1
        self._lose(reason)

    def close(self, reason: str) -> None:
        """Hang up; the requests without an answer are lost, the next one opens the line again."""
        if self.is_connected or self.is_opening:
            self._links.outputs.append(CloseLink(self.id))
        if self._may_connect is not None:
            self._may_connect.cancel()
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        self.is_connected = False
        self.is_opening = False
        self.is_ready = False
        self._under_way = None
        self._login_again_ms = None
        queued, self._queue = self._queue, deque()
        waiting = self._conversation.lose() + [then for _, _, then in queued]
        call_each(waiting, LinkLost(reason))


class PeerLinks:
    """The node's lines to its peers, by broker and lane (what the line is for)."""

    def __init__(
        self,
        outputs: list[Output],
        timers: Timers,
        clock: Clock,
        *,
        broker_id: Callable[[], BrokerId],
        request_timeout_ms: int,
        address_of: Callable[[BrokerId], Address | None],
        listener: str = "",
        login: SaslLogin | None = None,
        make_nonce: Callable[[], str] = str,
    ) -> None:
        self.outputs = outputs
        self.timers = timers
        self.clock = clock
        self._broker_id = broker_id
        self.request_timeout_ms = request_timeout_ms
        self.address_of = address_of
        self.listener = listener
        """Of the others: through which we come."""
        self.login = login
        """As whom this broker comes to the inter-broker listeners of others."""
        self.make_nonce = make_nonce
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
            name = str(self._broker_id()) if client_id is None else client_id
            link = PeerLink(self, self._next_id, broker, lane, name, negotiates)
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
