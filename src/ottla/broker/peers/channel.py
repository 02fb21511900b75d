"""The controller's channels to the brokers: one each, itself included; in order, until the broker is gone."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.broker.peers.links import LinkLost, PeerLink, PeerLinks
from ottla.broker.runtime.timers import Timer, Timers
from ottla.config.areas import ListenersConfig
from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId

log = logging.getLogger(__name__)

LANE = "controller"
RETRY_MS = 100

Then: TypeAlias = Callable[[Any], None]


class BrokerChannel:
    """Sends one request after the other; one without an answer is sent again, for ever.

    A broker that does not answer is still a member: whatever it was told last may be lost, and only the
    order of what it hears keeps it right. When its registration goes, the channel goes.
    """

    __slots__ = ("_channels", "_is_waiting", "_link", "_queue", "_retry", "failures", "registration")

    def __init__(self, channels: "Channels", registration: BrokerRegistration) -> None:
        self._channels = channels
        self._queue: deque[tuple[Any, int, Then]] = deque()
        self._is_waiting = False
        self._retry: Timer | None = None
        self.failures = 0
        self.registration = registration
        self._link: PeerLink | None = channels.links.get(registration.broker, LANE)
        self.take_address(registration)

    def take_address(self, registration: BrokerRegistration) -> None:
        """The broker's endpoints changed; the next connection goes there."""
        self.registration = registration
        name = self._channels.listener
        endpoint = registration.endpoint(name)
        if endpoint is None:
            log.error(
                "a broker has no listener for the controller broker=%d listener=%s", registration.broker, name
            )
        elif self._link is not None:
            self._link.address = (endpoint.host, endpoint.port)
            self._link.login = self._channels.login
            self._link.listener = name

    def send(self, message: Any, version: int, then: Then) -> None:
        """Queue this; ``then`` gets the response, unless the channel is closed before."""
        self._queue.append((message, version, then))
        if not self._is_waiting:
            self._send_next()

    def _send_next(self) -> None:
        if self._queue and self._link is not None:
            message, version, _ = self._queue[0]
            self._is_waiting = True
            self._link.request(message, version, self._answered)

    def _answered(self, response: Any) -> None:
        if self._link is None:
            return
        if isinstance(response, LinkLost):
            self.failures += 1
            if self.failures == 1:
                log.warning(
                    "a broker does not hear the controller broker=%d reason=%s",
                    self.registration.broker,
                    response.reason,
                )
            self._retry = self._channels.timers.after(RETRY_MS, self._send_next)
            return
        self.failures = 0
        _, _, then = self._queue.popleft()
        self._is_waiting = False
        try:
            then(response)
        finally:  # a mistake about this answer is no reason to keep back the next request
            if not self._is_waiting:
                self._send_next()

    def close(self, reason: str) -> None:
        """Forget what is queued, and hang up."""
        link, self._link = self._link, None
        self._queue.clear()
        if self._retry is not None:
            self._retry.cancel()
        if link is not None:
            self._channels.links.drop(link, reason)


class Channels:
    """All channels of one term."""

    __slots__ = ("_by_broker", "links", "listener", "login", "timers")

    def __init__(self, links: PeerLinks, timers: Timers, listeners: ListenersConfig) -> None:
        self.links = links
        self.timers = timers
        self.listener = listeners.control_plane_listener_name or listeners.inter_broker_listener_name
        self.login = listeners.logins.get(self.listener)
        self._by_broker: dict[BrokerId, BrokerChannel] = {}

    def connect(self, registration: BrokerRegistration) -> None:
        """Open a channel; a broker in a new life gets a new one, one that only moved keeps its own."""
        known = self._by_broker.get(registration.broker)
        if known is not None and known.registration.epoch == registration.epoch:
            known.take_address(registration)
            return
        self.disconnect(registration.broker, "the broker began a new life")
        self._by_broker[registration.broker] = BrokerChannel(self, registration)

    def disconnect(self, broker: BrokerId, reason: str) -> None:
        """The broker is gone."""
        channel = self._by_broker.pop(broker, None)
        if channel is not None:
            channel.close(reason)

    def send(self, broker: BrokerId, message: Any, version: int, then: Then) -> None:
        """Queue a request for a broker; one that is gone hears nothing."""
        channel = self._by_broker.get(broker)
        if channel is not None:
            channel.send(message, version, then)

    def close(self, reason: str) -> None:
        """The term is over."""
        for broker in list(self._by_broker):
            self.disconnect(broker, reason)
