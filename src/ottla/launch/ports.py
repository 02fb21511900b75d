"""Loopback ports: free ones, and whether one is."""

import errno
import socket

from ottla.launch.refusal import LaunchRefused

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment, all different."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            held.append(socket.create_server((LOOPBACK, 0)))
        return [int(server.getsockname()[1]) for server in held]
    finally:
        for server in held:
            server.close()


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
