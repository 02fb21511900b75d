"""A client's connection to one broker in the simulated world: requests out, answers or loss back."""

from collections.abc import Callable
from typing import Any

from ottla.sim.machine.broker import FrameCutter
from ottla.sim.machine.network import Connection, Network
from ottla.sim.world import SECOND, World
from ottla.wire.connection import ClientSide, UnexpectedResponse
from ottla.wire.fields import Request

REQUEST_LIMIT_US = 8 * SECOND


class Rpc:
    """One connection, opened when needed. Every question is answered once: a response, or None."""

    def __init__(self, world: World, network: Network, host: str, address: tuple[str, int]) -> None:
        self.host = host
        self._world = world
        self._network = network
        self._address = address
        self._connection: Connection | None = None
        self._is_opening = False
        self._life = 0
        self._conversation: ClientSide[Callable[[Any], None]] = ClientSide(host)
        self._is_watched = False
        self._unsent: list[bytes] = []
        self._cutter = FrameCutter()

    def ask(self, message: Request, version: int, then: Callable[[Any], None]) -> None:
        """Send a request; ``then`` hears the response, or None when the connection was lost first."""
        deadline_us = self._world.now_us + REQUEST_LIMIT_US
        self._unsent.append(b"".join(self._conversation.send(message, version, then, deadline_us)))
        if not self._is_watched:
            self._is_watched = True
            self._world.after(REQUEST_LIMIT_US, self._watch)
        self._flush()

    def _watch(self) -> None:
        """Give the connection up when its oldest question has waited too long."""
        self._is_watched = False
        oldest = self._conversation.oldest
        if oldest is None:
            return
        left_us = oldest.deadline - self._world.now_us
        if left_us > 0:
            self._is_watched = True
            self._world.after(left_us, self._watch)
            return
        if self._world.on_silence is not None:
            self._world.on_silence(self.host, self._address[0])
        self.close()

    def _flush(self) -> None:
        if self._connection is not None:
            unsent, self._unsent = self._unsent, []
            for frame in unsent:
                self._connection.send(self, frame)
        elif not self._is_opening:
            self._is_opening = True
            life = self._life

            def connected(connection: Connection) -> None:
                if self._life != life:
                    connection.close(self)
                    return
                self._is_opening = False
                self._connection = connection
                self._flush()

            def refused(reason: str) -> None:
                if self._life == life:
                    self.lost(reason)

            self._network.connect(self, *self._address, connected, refused)

    def close(self) -> None:
        """The client is gone, or has no more to ask."""
        if self._connection is not None:
            self._connection.close(self)
        self.lost("closed")

    # -- End ---------------------------------------------------------------------------------

    def bind(self, connection: Connection) -> None:
        self._connection = connection

    def received(self, data: bytes) -> None:
        for frame in self._cutter.feed(data):
            try:
                then, response = self._conversation.receive(frame)
            except UnexpectedResponse:
                continue  # it was under way on a connection that this side had given up
            then(response)

    def lost(self, reason: str) -> None:
        """The connection is gone: everyone who waited hears so, and the next question opens a new one."""
        self._life += 1
        self._connection = None
        self._is_opening = False
        self._cutter = FrameCutter()
        self._unsent.clear()
        for then in self._conversation.lose():
            then(None)
