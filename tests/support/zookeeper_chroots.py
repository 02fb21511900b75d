"""Gives every test a part of one shared ZooKeeper for itself."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

from kazoo.client import KazooClient

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper


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
    """Makes the nodes, through one session that lasts as long as the server."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self._server = server
        self._client = KazooClient(server.connect)
        self._numbers = itertools.count(1)

    def make(self) -> Chroot:
        """A node that no other test has."""
        chroot = f"/test-{next(self._numbers)}"
        self._client.create(chroot)
        return Chroot(self._server.connect, chroot)

    def __enter__(self) -> Self:
        self._client.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.stop()
        self._client.close()
