"""The other brokers' side of the edge: connections that the node asks for."""

import asyncio
import socket
import ssl
import struct
from typing import TYPE_CHECKING, cast

from ottla.broker.outputs import Buffer
from ottla.model.errors import MalformedRequest
from ottla.security.tls.session import words_of
from ottla.wire.framing import ReceiveBuffer

if TYPE_CHECKING:
    from ottla.server.edge import Edge

CONNECT_TIMEOUT_S = 10.0
RESPONSE_BYTES_MAX = 2**31 - 1
_AT_ONCE = struct.pack("ii", 1, 0)


class PeerConnection(asyncio.BufferedProtocol):
    """One connection to a peer. After ``forget`` it reports nothing more."""

    __slots__ = ("_edge", "_is_encrypted", "_link", "_opening", "_receive", "_transport", "address")

    def __init__(self, edge: "Edge", link: int, address: str) -> None:
        self._edge = edge
        self.address = address
        self._link: int | None = link
        self._is_encrypted = False
        self._receive = ReceiveBuffer(RESPONSE_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None

    def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Begin to connect, encrypted if a context is given; the node hears the outcome."""
        self._is_encrypted = tls is not None
        self._opening = self._edge.loop.create_task(self._open(host, port, tls))

    async def _open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._edge.loop.create_connection(lambda: self, host, port, ssl=tls)
        except TimeoutError:
            self._lost(f"no connection to {host}:{port} within {CONNECT_TIMEOUT_S:.0f} s")
        except ssl.SSLError as error:
            self._lost(f"no TLS connection to {host}:{port}: {words_of(error)}")
        except (OSError, UnicodeError) as error:  # A name that no host can have is a UnicodeError.
            self._lost(f"no connection to {host}:{port}: {getattr(error, 'strerror', None) or error}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._link is None:
            self._transport.abort()
        else:
            self._edge.peer_connected(self._link)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self._receive.received(count)
        try:
            while self._link is not None and (frame := self._receive.next_frame()) is not None:
                self._edge.peer_answered(self._link, frame)
        except MalformedRequest as malformed:
            self._lost(f"malformed answer: {malformed}")
            self._abort()
        self._edge.end_turn()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(str(exc) if exc is not None else "the peer closed the connection")

    def _lost(self, reason: str) -> None:
        if self._link is not None:
            link, self._link = self._link, None
            self._edge.peer_lost(link, reason)

    def write(self, parts: list[Buffer]) -> None:
        """Send this."""
        if self._transport is not None and not self._transport.is_closing():
            # Encrypted, each part would become a record of its own.
            self._transport.writelines([b"".join(parts)] if self._is_encrypted else parts)

    def forget(self) -> None:
        """Close, and report nothing more."""
        self._link = None
        if self._opening is not None:
            self._opening.cancel()
        self._abort()

    def cut(self) -> None:
        """The network to this peer is gone."""
        if self._opening is not None:
            self._opening.cancel()
        self._lost("the network is cut")
        self._abort()

    def _abort(self) -> None:
        """Reset, and do not only close: the system would go on sending what it has, and a request that was
        given up would come behind those that were sent over the next connection."""
        if self._transport is not None:
            if not self._transport.is_closing():
                own = self._transport.get_extra_info("socket")
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self._transport.abort()
