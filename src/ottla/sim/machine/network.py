"""Connections that deliver in order, late, or not at all; cut by direction, reset by death."""

from bisect import insort
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol, TypeAlias

from ottla.sim.world import SECOND, World

LATENCY_US = (50, 400)
SLOW_LATENCY_US = (5_000, 300_000)
SLOW_CHANCE = 0.002
STALL_LIMIT_US = 12 * SECOND
"""How long the kernel goes on trying before it gives a silent connection up."""


class End(Protocol):
    """One side of a connection, as the process that holds it sees it."""

    host: str

    def bind(self, connection: "Connection") -> None:
        """The connection is made; the accepting side learns of it first."""

    def received(self, data: bytes) -> None: ...

    def lost(self, reason: str) -> None: ...


Accept: TypeAlias = Callable[[str], End | None]
"""Called with the host that knocks; gives the serving end, or nothing to refuse."""


class Pipe:
    """One direction of a connection."""

    __slots__ = ("connection", "destination", "last_us", "sent", "source", "stalled", "stalled_since_us")

    def __init__(self, connection: "Connection", source: str, destination: str) -> None:
        self.connection = connection
        self.source = source
        self.destination = destination
        self.last_us = 0
        self.sent = 0
        self.stalled: list[tuple[int, bytes]] = []
        """What a cut holds up, by number: what was under way when it came is before what was sent since."""
        self.stalled_since_us: int | None = None


class Connection:
    """Two ends; what one sends the other receives in the same order, unless the connection dies first.

    What was under way when the sender closed it still arrives, before the news of the end.
    """

    __slots__ = ("is_open", "left", "listening", "network", "right", "to_left", "to_right")

    def __init__(self, network: "Network", left: End, right: End) -> None:
        self.network = network
        self.left = left
        self.right = right
        self.is_open = True
        self.listening: tuple[End, ...] = (left, right)
        """Who still takes what was sent to it."""
        self.to_right = Pipe(self, left.host, right.host)
        self.to_left = Pipe(self, right.host, left.host)

    def send(self, sender: End, data: bytes) -> None:
        if self.is_open:
            self.network.transmit(self.to_right if sender is self.left else self.to_left, data)

    def close(self, closer: End, reason: str = "closed by the other side") -> None:
        """The other side hears of it if the network lets it; otherwise it finds out in time."""
        if not self.is_open:
            return
        other = self.right if closer is self.left else self.left
        self._end((other,))
        blocked = self.network.is_blocked(closer.host, other.host)
        self._tell(other, reason, STALL_LIMIT_US if blocked else self.network.latency_us())

    def reset(self, reason: str) -> None:
        """Both sides lose it; each may have received what was under way, or not."""
        if self.is_open:
            world = self.network.world
            self._end(tuple(end for end in (self.left, self.right) if world.happens(0.5)))
            for end in (self.left, self.right):
                self._tell(end, reason, self.network.latency_us())

    def _end(self, listening: tuple[End, ...]) -> None:
        self.is_open = False
        self.listening = listening
        self.network.forget(self)

    def _tell(self, end: End, reason: str, delay_us: int) -> None:
        """Whoever still listens hears of the end behind all that was sent to it."""
        world = self.network.world
        if end in self.listening:
            pipe = self.to_right if end is self.right else self.to_left
            delay_us = max(delay_us, pipe.last_us - world.now_us)
        world.after(delay_us, partial(end.lost, reason))


class Network:
    """Who can reach whom."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_slow = False
        self.slow_hosts: dict[str, None] = {}
        """Links of their own: whatever goes to or from these is late."""
        self._blocked: dict[tuple[str, str], None] = {}
        self._servers: dict[tuple[str, int], Accept] = {}
        self._connections: dict[Connection, None] = {}

    def latency_us(self) -> int:
        if self.is_slow or self.world.happens(SLOW_CHANCE):
            return self.world.between(*SLOW_LATENCY_US)
        return self.world.between(*LATENCY_US)

    # -- reachability ------------------------------------------------------------------------

    def block(self, source: str, destination: str) -> None:
        self._blocked[(source, destination)] = None

    def unblock_all(self) -> None:
        self._blocked.clear()
        for connection in list(self._connections):
            for pipe in (connection.to_left, connection.to_right):
                stalled, pipe.stalled, pipe.stalled_since_us = pipe.stalled, [], None
                for _, data in stalled:
                    self.transmit(pipe, data)

    def is_blocked(self, source: str, destination: str) -> bool:
        return (source, destination) in self._blocked

    def can_talk(self, one: str, other: str) -> bool:
        return not self.is_blocked(one, other) and not self.is_blocked(other, one)

    # -- listening and connecting ------------------------------------------------------------

    def listen(self, host: str, port: int, accept: Accept) -> None:
        self._servers[(host, port)] = accept

    def stop_listening(self, host: str, port: int) -> None:
        self._servers.pop((host, port), None)

    def connect(
        self,
        end: End,
        host: str,
        port: int,
        connected: Callable[[Connection], None],
        refused: Callable[[str], None],
    ) -> None:
        """Try to connect; one of the two is called, later."""
        if not self.can_talk(end.host, host):
            self.world.after(STALL_LIMIT_US // 2, lambda: refused("timed out"))
            return

        def arrive() -> None:
            accept = self._servers.get((host, port))
            server = accept(end.host) if accept is not None else None
            if server is None:
                self.world.after(self.latency_us(), lambda: refused("connection refused"))
                return
            connection = Connection(self, end, server)
            self._connections[connection] = None
            server.bind(connection)
            self.world.after(self.latency_us(), partial(connected, connection))

        self.world.after(self.latency_us(), arrive)

    def forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    def reset_some(self, luck: Random, share: float) -> int:
        """Connections break; what was under way on them may or may not have arrived."""
        broken = [each for each in self._connections if luck.random() < share]
        for connection in broken:
            connection.reset("connection reset by peer")
        return len(broken)

    def host_died(self, host: str) -> None:
        """The kernel of a dead process resets its connections; those behind a cut notice late."""
        for connection in list(self._connections):
            if host in (connection.left.host, connection.right.host):
                dead = connection.left if connection.left.host == host else connection.right
                connection.close(dead, "connection reset")

    # -- moving bytes ------------------------------------------------------------------------

    def transmit(self, pipe: Pipe, data: bytes) -> None:
        connection = pipe.connection
        number = pipe.sent = pipe.sent + 1
        if self.is_blocked(pipe.source, pipe.destination) or pipe.stalled:
            self._stall(pipe, number, data)
            return
        latency_us = self.latency_us()
        if self.slow_hosts and (pipe.source in self.slow_hosts or pipe.destination in self.slow_hosts):
            latency_us += self.world.between(*SLOW_LATENCY_US)
        arrival_us = max(self.world.now_us + latency_us, pipe.last_us)
        pipe.last_us = arrival_us

        def deliver() -> None:
            receiver = connection.right if pipe is connection.to_right else connection.left
            if receiver not in connection.listening:
                return
            if not self.is_blocked(pipe.source, pipe.destination):
                receiver.received(data)
            elif connection.is_open:
                self._stall(pipe, number, data)

        self.world.after(arrival_us - self.world.now_us, deliver)

    def _stall(self, pipe: Pipe, number: int, data: bytes) -> None:
        insort(pipe.stalled, (number, data))
        if pipe.stalled_since_us is None:
            since_us = pipe.stalled_since_us = self.world.now_us

            def give_up() -> None:
                if pipe.stalled_since_us == since_us:
                    pipe.connection.reset("timed out")

            self.world.after(STALL_LIMIT_US, give_up)
