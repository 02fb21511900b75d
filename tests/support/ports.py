"""Free TCP ports for processes that must be told theirs, and keep it over a restart."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from ottla.launch.ports import LOOPBACK, free_ports


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    return free_ports(1)[0]


def first_of_free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    while True:
        first = free_port()
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                continue
            return first
