"""The keeper's sockets: one protocol object per connection, and turns that end with one write to the disk."""

import asyncio
import time
from collections.abc import Callable
from typing import cast

from ottla.keeper.node import Keeper
from ottla.zookeeper.server.connection import Connection

WRITE_BUFFER_HIGH_BYTES = 1024 * 1024
"""No more requests are taken from a client that leaves more than this unread."""
SESSIONLESS_S_MAX = 10.0
"""A connection that has not asked for a session by then is closed, as at Java's server."""
UNREAD_BYTES_MAX = 64 * 1024 * 1024
"""A client that leaves so much unread, by its watches, is hung up on."""
ENDING_S_MAX = 10.0
"""Whoever is hung up on has so long to read the rest; a frozen process never would."""
HELD_UP_MS = 1_000
"""Whoever was held up for longer hears for as long what clients sent meanwhile, before it ends a session."""


class KeeperEdge:
    """Drives the keeper: a turn is all that arrived before the loop has time to write it down."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        keeper: Keeper,
        connections_per_address: int,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.loop = loop
        self.keeper = keeper
        self.connections_per_address = connections_per_address
        self._on_failure = on_failure
        self._protocols: dict[Connection, KeeperConnection] = {}
        self._is_in_turn = False
        self._has_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._hears_until_ms = 0
        self._set_timer()

    def begin_turn(self) -> None:
        """Something happened; the turn ends when the loop has handed over the rest of it."""
        if self._is_in_turn or self._has_ended:
            return
        self._is_in_turn = True
        self.keeper.begin_turn(self._now_ms(), time.time_ns() // 1_000_000)
        self.loop.call_soon(self.end_turn)

    def _now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def end_turn(self) -> None:
        """Write to the disk what was decided, then send."""
        self._is_in_turn = False
        if self._has_ended:
            return
        try:
            dirty = self.keeper.end_turn()
        except Exception as error:  # Whatever it was: what may not be on the disk is never sent.
            self._has_ended = True
            self._on_failure(error)
            return
        flushed = [protocol for each in dirty if (protocol := self._protocols.get(each)) is not None]
        for protocol in flushed:
            protocol.flush()
        for protocol in flushed:
            protocol.go_on()  # Not before: what it asks now belongs to the next turn, and so do its events.
        if self.keeper.is_writing_snapshot:
            self.loop.call_soon(self.begin_turn)
        self._set_timer()

    def _set_timer(self) -> None:
        next_ms = max(self.keeper.server.next_tick_ms(), self._hears_until_ms)
        if self._timer is not None:
            if self._timer_ms <= next_ms:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(next_ms / 1000, self._on_timer)
        self._timer_ms = next_ms

    def _on_timer(self) -> None:
        """Time has passed; if the disk, or the system, held us up, clients were not silent but not heard."""
        self._timer = None
        now_ms = self._now_ms()
        if now_ms - self._timer_ms > HELD_UP_MS:
            self._hears_until_ms = now_ms + HELD_UP_MS
            self._set_timer()
            return
        self.begin_turn()
        self.keeper.server.tick()

    # ---- from connections

    def admit(self, protocol: "KeeperConnection", address: str, port: int) -> Connection | None:
        """Take a connection, unless its address has too many."""
        limit = self.connections_per_address
        if limit and sum(each.address == address for each in self._protocols) >= limit:
            return None
        self.begin_turn()
        connection = self.keeper.server.connect(address, port)
        self._protocols[connection] = protocol
        return connection

    def lose(self, connection: Connection) -> None:
        """A connection is gone."""
        self._protocols.pop(connection, None)
        self.keeper.server.lose(connection)

    def end(self) -> None:
        """Close every connection at once, and write nothing more: what waits was never answered."""
        self._has_ended = True
        for protocol in list(self._protocols.values()):
            protocol.abort()


class KeeperConnection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = ("_connection", "_edge", "_is_full", "_is_reading", "_transport")

    def __init__(self, edge: KeeperEdge) -> None:
        self._edge = edge
        self._transport: asyncio.Transport
        self._connection: Connection | None = None
        self._is_full = False
        self._is_reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._connection = self._edge.admit(self, _as_java_writes_it(peer[0]), peer[1])
        if self._connection is None:
            self._transport.abort()
        else:
            self._edge.loop.call_later(SESSIONLESS_S_MAX, self._end_without_session)

    def _end_without_session(self) -> None:
        if self._connection is not None and not self._connection.has_session:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is not None:
            self._edge.begin_turn()
            self._edge.keeper.server.receive(connection, data)
            self._reconsider()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._edge.lose(connection)

    def pause_writing(self) -> None:
        self._is_full = True
        self._reconsider()

    def resume_writing(self) -> None:
        self._is_full = False
        self.go_on()

    def go_on(self) -> None:
        """Serve what waits, then read again."""
        connection = self._connection
        if self._transport.is_closing():
            return
        if connection is not None and connection.waiting and not self._is_full:
            self._edge.begin_turn()
            self._edge.keeper.server.receive(connection, b"")
        self._reconsider()

    def _reconsider(self) -> None:
        """Take no more bytes from a client while requests of it wait, or answers to it."""
        connection, transport = self._connection, self._transport
        if connection is None or transport.is_closing():
            return
        wanted = not self._is_full and not connection.waiting
        if wanted != self._is_reading:
            self._is_reading = wanted
            (transport.resume_reading if wanted else transport.pause_reading)()

    # ---- from the edge

    def flush(self) -> None:
        """Send what waits; the turn in which it was decided is on the disk."""
        connection, transport = self._connection, self._transport
        if connection is None or transport.is_closing():
            return
        if connection.out:
            transport.writelines(connection.take_out())
        if connection.is_closing:
            transport.close()
            self._edge.loop.call_later(ENDING_S_MAX, transport.abort)
        elif transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            transport.abort()

    def abort(self) -> None:
        """Hang up at once."""
        self._transport.abort()


def _as_java_writes_it(address: str) -> str:
    """An address by which access control lists know a client."""
    return "0:0:0:0:0:0:0:1" if address == "::1" else address
