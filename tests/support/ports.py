"""Free TCP ports for processes that must be told theirs, and keep it over a restart."""

from __future__ import annotations

import random
import socket

# Below the range that the kernel hands to outgoing connections, so nobody takes it while its owner is down.
FIRST_PORT, LAST_PORT = 15_000, 32_000
_entropy = random.SystemRandom()


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    for _ in range(200):
        port = _entropy.randint(FIRST_PORT, LAST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port found in 200 tries")
