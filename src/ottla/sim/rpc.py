"""A client's connection to one broker in the simulated world: requests out, answers or loss back."""

from collections.abc import Callable
from typing import Any

from ottla.sim.broker import FrameCutter
from ottla.sim.network import Connection, Network
from ottla.sim.world import SECOND, World
from ottla.wire.fields import Request, Response
from ottla.wire.headers import decode_response, frame_request

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
        self._correlation = 0
        self._waiting: dict[int, tuple[type[Response], int, Callable[[Any], None]]] = {}
        self._asked_us: dict[int, int] = {}
        self._is_watched = False
        self._unsent: list[tuple[int, bytes]] = []
        self._cutter = FrameCutter()

    def ask(
        self, message: Request, version: int, answer: type[Response], then: Callable[[Any], None]
    ) -> None:
        """Send a request; ``then`` hears the response, or None when the connection was lost first."""
        self._correlation += 1
        number = self._correlation
        self._waiting[number] = (answer, version, then)
        self._unsent.append((number, b"".join(frame_request(message, version, number, self.host))))
        if not self._is_watched:
            self._is_watched = True
            self._world.after(REQUEST_LIMIT_US, self._watch)
        self._asked_us[number] = self._world.now_us
        self._flush()

    def _watch(self) -> None:
        """Give the connection up when its oldest question has waited too long."""
        self._is_watched = False
        if not self._waiting:
            return
        silent_us = self._world.now_us - self._asked_us[next(iter(self._waiting))]
        if silent_us < REQUEST_LIMIT_US:
            self._is_watched = True
            self._world.after(REQUEST_LIMIT_US - silent_us, self._watch)
            return
        if self._world.on_silence is not None:
            self._world.on_silence(self.host, self._address[0])
        self.close()

    def _flush(self) -> None:
        if self._connection is not None:
            unsent, self._unsent = self._unsent, []
            for _, frame in unsent:
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
            number = int.from_bytes(frame[:4], "big")
            waiting = self._waiting.pop(number, None)
            self._asked_us.pop(number, None)
            if waiting is not None:
                cls, version, then = waiting
                _, message = decode_response(cls, version, frame)
                then(message)

    def lost(self, reason: str) -> None:
        """The connection is gone: everyone who waited hears so, and the next question opens a new one."""
        self._life += 1
        self._connection = None
        self._is_opening = False
        self._cutter = FrameCutter()
        self._unsent.clear()
        self._asked_us.clear()
        waiting, self._waiting = self._waiting, {}
        for _, _, then in waiting.values():
            then(None)
