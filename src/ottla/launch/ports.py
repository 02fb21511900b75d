"""Loopback ports: free ones, and whether one is."""

import errno
import random
import socket
from contextlib import ExitStack
from pathlib import Path

from ottla.launch.refusal import LaunchRefused

LOOPBACK = "127.0.0.1"
ANY_PORT = 0
FIRST_PORT = 15_000
OUTGOING_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_entropy = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment, all different.

    They lie below those that the kernel gives to outgoing connections, where there is room: one of these
    could take the port before its owner listens on it, or while its owner is down.
    """
    below = range(FIRST_PORT, lowest_outgoing_port())
    candidates = iter(_entropy.sample(below, min(len(below), 20 * count)))
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            port = next(candidates, ANY_PORT)
            try:
                server = held.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                if port == ANY_PORT:
                    raise
            else:
                ports.append(int(server.getsockname()[1]))
    return ports


def lowest_outgoing_port() -> int:
    """Where the ports begin that the kernel gives to outgoing connections."""
    try:
        return int(OUTGOING_PORTS.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return FIRST_PORT


def require_free(port: int) -> None:
    """Refuse a port that someone listens on, or that this user may not take."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        if error.errno == errno.EACCES:
            raise LaunchRefused(f"this user may not listen on port {port}; choose one above 1023") from error
        raise LaunchRefused(
            f"port {port} on {LOOPBACK} is in use; stop what listens there, or choose another port"
        ) from error
