"""Free TCP ports for processes that must be told theirs, and keep it over a restart."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack

from ottla.launch.ports import FIRST_PORT, LOOPBACK, free_ports, lowest_outgoing_port

FIRST_OF_TESTS = 10_000
"""From here up to where Ottla itself looks for free ones: nobody else takes a port between choice and use."""


def _ports_of_this_worker() -> Iterator[int]:
    """Each worker has ports of its own, and comes back to one only after all the others."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = range(FIRST_OF_TESTS, min(FIRST_PORT, lowest_outgoing_port()))[worker::workers]
    start = random.SystemRandom().randrange(len(ports)) if ports else 0
    return itertools.cycle([*ports[start:], *ports[:start]])


_wished = _ports_of_this_worker()


def free_port() -> int:
    """A port of the loopback address that nobody listens on, and that nobody was given lately."""
    for port in itertools.islice(_wished, FIRST_PORT - FIRST_OF_TESTS):
        try:
            socket.create_server((LOOPBACK, port)).close()
        except OSError:
            continue
        return port
    return free_ports(1)[0]


def first_of_free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    while True:
        first = free_ports(1)[0]
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                continue
            return first
