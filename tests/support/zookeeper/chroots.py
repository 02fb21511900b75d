"""Gives every test a part of one shared ZooKeeper for itself.

The nodes are made over a bare socket: a client with a thread of its own would live through the whole session,
and its use of chance would reach into the tests that draw from it.
"""

from __future__ import annotations

import itertools
import socket
import struct
from dataclasses import dataclass

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.ports import LOOPBACK
from ottla.launch.zookeeper.keeper import EmbeddedKeeper

CREATE = 1
ALL_PERMISSIONS = 31
PERSISTENT = 0

_numbers = itertools.count(1)
"""Of this process: two ``Chroots`` may share a server."""


@dataclass(frozen=True, slots=True)
class Chroot:
    """An empty node under which one test does all it does."""

    address: str
    chroot: str

    @property
    def connect(self) -> str:
        """What goes into ``zookeeper.connect``."""
        return self.address + self.chroot


class Chroots:
    """Makes the nodes, each through a session of a moment."""

    def __init__(self, server: EmbeddedKeeper | EmbeddedZooKeeper) -> None:
        self._server = server

    def make(self) -> Chroot:
        """A node that no other test has."""
        chroot = f"/test-{next(_numbers)}"
        with socket.create_connection((LOOPBACK, self._server.port), timeout=30) as connection:
            _ask(connection, struct.pack(">iqiqi16s?", 0, 0, 10_000, 0, 16, bytes(16), False))
            answer = _ask(connection, _create(chroot))
            _ask(connection, struct.pack(">ii", 2, -11))
        (error,) = struct.unpack_from(">i", answer, 12)
        assert error == 0, f"ZooKeeper refused to create {chroot}: {error}"
        return Chroot(self._server.connect, chroot)


def _create(path: str) -> bytes:
    acl = struct.pack(">ii", 1, ALL_PERMISSIONS) + _text("world") + _text("anyone")
    return struct.pack(">ii", 1, CREATE) + _text(path) + _text("") + acl + struct.pack(">i", PERSISTENT)


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode("ascii")


def _ask(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb", buffering=0) as stream:
        (size,) = struct.unpack(">i", _exactly(stream, 4))
        return _exactly(stream, size)


def _exactly(stream: socket.SocketIO, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = stream.read(size - len(received))
        assert part, "ZooKeeper hung up"
        received += part
    return received
