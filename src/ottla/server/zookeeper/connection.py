"""One TCP or TLS connection of the ZooKeeper client, and the way to one of a host's addresses."""

import asyncio
import socket
import ssl
from functools import partial
from typing import Protocol, cast

from ottla.zookeeper.connect_string import Host

REFUSED = "connection refused"


class Owner(Protocol):
    """Who is told of a connection."""

    def on_bytes(self, data: bytes) -> None: ...
    def on_connection_lost(self, connection: "Connection", reason: str) -> None: ...
    def on_may_write_again(self) -> None: ...


class Connection(asyncio.Protocol):
    """One connection; once abandoned it reports nothing more."""

    def __init__(self, owner: Owner) -> None:
        self._owner: Owner | None = owner
        self._transport: asyncio.Transport | None = None
        self.may_write = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._owner is None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._owner is not None:
            self._owner.on_bytes(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._owner is not None:
            owner, self._owner = self._owner, None
            owner.on_connection_lost(self, "the server closed the connection" if exc is None else str(exc))

    def pause_writing(self) -> None:
        self.may_write = False

    def resume_writing(self) -> None:
        self.may_write = True
        if self._owner is not None:
            self._owner.on_may_write_again()

    def write(self, data: bytes) -> None:
        """Send this."""
        if self._transport is not None:
            self._transport.write(data)

    def abandon(self) -> None:
        """Close without a word to the owner."""
        self._owner = None
        if self._transport is not None:
            self._transport.abort()


async def reach(owner: Owner, host: Host, tls: ssl.SSLContext | None, first: int) -> tuple[Connection, int]:
    """A connection to one of the host's addresses, beginning with the given one, and which it was."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host.name, host.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("that is not a host name") from None
    problem = OSError("the name has no address")
    for number in range(first, first + len(addresses)):
        family, _, _, _, address = addresses[number % len(addresses)]
        connection = Connection(owner)
        try:
            await loop.create_connection(
                partial(_same, connection),
                str(address[0]),
                host.port,
                family=family,
                ssl=tls,
                server_hostname=host.name if tls is not None else None,
            )
        except OSError as refused:
            problem = refused
        except BaseException:
            connection.abandon()
            raise
        else:
            return connection, number
    try:
        raise problem
    finally:
        del problem  # The traceback would hold this frame, and this frame the exception.


def _same(connection: Connection) -> Connection:
    return connection


def why_unreachable(problem: OSError) -> str:
    """The reason in a few words."""
    if isinstance(problem, ConnectionRefusedError) or "Connect call failed" in str(problem):
        return REFUSED
    return (problem.strerror or str(problem)).lower()
