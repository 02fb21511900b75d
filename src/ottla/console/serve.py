"""Runs the console: a socket on loopback, a server on it, the address told when it answers."""

import socket
from collections.abc import Callable, Collection

import uvicorn

from ottla.client.config import ClientConfig
from ottla.console.app import Console
from ottla.console.guard.token import HOST, Token


def bound(port: int) -> socket.socket:
    """Listens from now on; raises ``OSError`` where the port is taken. 0 is any free one."""
    return socket.create_server((HOST, port))


def inherited(descriptor: int) -> socket.socket:
    """The socket on which whoever started us listens already."""
    return socket.socket(fileno=descriptor)


def serve(
    config: ClientConfig,
    listening: socket.socket,
    secret: str,
    tell: Callable[[str], None],
    *,
    allowed: Collection[str] = (),
    log: Callable[[str], None] = print,
    shows_records: bool = True,
) -> None:
    """Until a signal ends it."""
    token = Token(secret, listening.getsockname()[1])
    console = Console(config, token, allowed, log, shows_records=shows_records)
    server = uvicorn.Server(
        uvicorn.Config(
            console.application(),
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            ws="none",
            lifespan="on",
        )
    )
    tell(token.address)
    server.run(sockets=[listening])
