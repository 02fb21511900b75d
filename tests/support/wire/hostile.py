"""A client that means harm: rubbish by the thousand, from a process that leaves others the processor.

``python -m support.wire.hostile PORT FRAMES SEED``
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
from contextlib import closing, suppress

from ottla.wire.versions import API_VERSIONS

PATIENCE_SECONDS = 0.005
FRAMES_A_CONNECTION = 10


def a_hostile_frame(chance: random.Random) -> bytes:
    """A header that may be sound with a body that is not: every API, every version, every size."""
    api_key = chance.choice(list(API_VERSIONS)) if chance.random() < 0.95 else chance.randrange(-100, 200)
    version = chance.randrange(-1, 20)
    body = chance.randbytes(chance.choice((0, 1, 2, 4, 8, 15, 40, 300)))
    if chance.random() < 0.3:
        body = chance.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\0\0\0\1", b"\xff\xff")) + body
    frame = struct.pack(">hhih", api_key, version, 1, -1) + chance.choice((b"", b"\0")) + body
    size = len(frame) if chance.random() < 0.9 else chance.choice((-1, 0, 2**31 - 1, len(frame) // 2))
    return struct.pack(">i", size) + frame


def attack(port: int, frames: int, seed: int) -> int:
    """Send so many hostile frames, on as many connections as the broker cuts off; how many were sent."""
    chance = random.Random(seed)
    address = ("127.0.0.1", port)
    sent = 0
    while sent < frames:
        with (
            suppress(OSError),
            closing(socket.create_connection(address, timeout=5)) as connection,
        ):
            connection.settimeout(PATIENCE_SECONDS)
            for _ in range(min(FRAMES_A_CONNECTION, frames - sent)):
                connection.sendall(a_hostile_frame(chance))
                sent += 1
                with suppress(TimeoutError):
                    if not connection.recv(65_536):
                        break
    return sent


if __name__ == "__main__":
    os.nice(10)
    attack(*map(int, sys.argv[1:4]))
