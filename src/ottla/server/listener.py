"""The clients' side of the edge: sockets that listen, and one protocol object per connection."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.outputs import Buffer
from ottla.model.cluster import Endpoint
from ottla.model.errors import MalformedRequest
from ottla.wire.framing import ReceiveBuffer

if TYPE_CHECKING:
    from ottla.server.edge import Edge

log = logging.getLogger(__name__)

FRAMES_PER_TURN = 64
"""After this many requests of one connection outputs go out, so that nobody waits for a whole pipeline."""

WRITE_BUFFER_HIGH_BYTES = 4 * 1024 * 1024
"""We stop reading from a client that leaves more than this unread."""


class ClientConnection(asyncio.BufferedProtocol):
    """One client's connection: cuts requests out of what arrives, writes what the node answers."""

    __slots__ = (
        "_edge",
        "_is_full",
        "_is_paused_by_node",
        "_is_reading",
        "_receive",
        "_transport",
        "host",
        "id",
        "is_encrypted",
        "last_active",
        "listener",
    )

    def __init__(self, edge: "Edge", listener: str, is_encrypted: bool = False) -> None:
        self._edge = edge
        self.listener = listener
        self.is_encrypted = is_encrypted
        """The node hears of the client when its TLS handshake is done."""
        self.id = 0
        self.host = ""
        self.last_active = 0.0
        self._receive = ReceiveBuffer(edge.first_frame_bytes_max(listener))
        self._transport: asyncio.Transport
        self._is_paused_by_node = False
        self._is_full = False
        self._is_reading = True

    # ---- from asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.host = plain_address(peer[0]) if peer else "unknown"
        self.last_active = self._edge.loop.time()
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        if not self._edge.admit(self):
            self._transport.abort()

    def secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is done; the client's certificate says who it is, if it has shown one."""
        self._edge.secured(self, certificate)

    def handshake_failed(self, reason: str) -> None:
        """The TLS layer closes the connection next."""
        self._edge.handshake_failed(self, reason)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self.last_active = self._edge.loop.time()
        self._receive.received(count)
        self._serve()

    def _serve(self) -> None:
        """Hand every whole request to the node, unless it has had enough of this client."""
        edge = self._edge
        served = 0
        try:
            while self._is_reading and (frame := self._receive.next_frame()) is not None:
                edge.request_came(self, frame)
                served += 1
                if served % FRAMES_PER_TURN == 0:
                    edge.end_turn()
        except MalformedRequest as malformed:
            edge.malformed(self, malformed)
        edge.end_turn()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_reading = False
        self._edge.client_lost(self)

    def pause_writing(self) -> None:
        self._is_full = True
        self._reconsider()

    def resume_writing(self) -> None:
        self._is_full = False
        self._reconsider()

    # ---- from the edge

    def write(self, parts: list[Buffer]) -> None:
        """Send this; asyncio keeps what the socket does not take at once."""
        if not self._transport.is_closing():
            self._transport.writelines(parts)
            self.last_active = self._edge.loop.time()

    def pause(self, is_paused: bool) -> None:
        """Stop reading from this client, or go on."""
        self._is_paused_by_node = is_paused
        self._reconsider()

    def _reconsider(self) -> None:
        wanted = not self._is_paused_by_node and not self._is_full and not self._transport.is_closing()
        if wanted == self._is_reading:
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
            self._edge.loop.call_soon(self._serve)
        elif not self._transport.is_closing():
            self._transport.pause_reading()

    def limit_frames(self, bytes_max: int) -> None:
        """From now on the client may send requests of this size."""
        self._receive.limit(bytes_max)

    def rest(self) -> None:
        """The client is silent: keep no more memory for it than for a new one."""
        self._receive.give_back()

    @property
    def is_closing(self) -> bool:
        """Whether the connection is closing: only what was written is still sent."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Hang up after what was written."""
        self._is_reading = False
        self._transport.close()

    def abort(self) -> None:
        """Hang up at once."""
        self._is_reading = False
        self._transport.abort()


class Listener:
    """One listening socket; bound at once, open to clients only when the node says so."""

    __slots__ = ("_server", "_socket", "endpoint")

    def __init__(self, endpoint: Endpoint, send_bytes: int, receive_bytes: int) -> None:
        self._socket = _bound_socket(endpoint, send_bytes, receive_bytes)
        self._server: asyncio.Server | None = None
        port = self._socket.getsockname()[1]
        self.endpoint = Endpoint(endpoint.listener, endpoint.host, port, endpoint.security_protocol)

    async def open(
        self, loop: asyncio.AbstractEventLoop, make: Callable[[], asyncio.BaseProtocol], backlog: int
    ) -> None:
        """Let clients in."""
        self._server = await loop.create_server(make, sock=self._socket, backlog=backlog)

    def close(self) -> None:
        """Accept no more connections; open ones stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
        else:
            self._socket.close()


def plain_address(host: str) -> str:
    """An IPv4 client's own address, also where it came in through a socket for both families."""
    mapped = host.removeprefix("::ffff:")
    return mapped if "." in mapped else host


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Where to listen: of a name's addresses that of IPv4 if there is one, as in Java."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError as error:
        raise OSError(f"{host} is not a host name") from error
    family, _, _, _, address = next((row for row in found if row[0] == socket.AF_INET), found[0])
    return family, address


def _bound_socket(endpoint: Endpoint, send_bytes: int, receive_bytes: int) -> socket.socket:
    """A socket at the listener's address; it refuses connections until it listens."""
    wants_all = not endpoint.host and socket.has_dualstack_ipv6()
    both = (socket.AF_INET6, ("::", endpoint.port))
    family, address = both if wants_all else _address(endpoint.host, endpoint.port)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if wants_all else 1)
        if receive_bytes > 0:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if send_bytes > 0:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound
