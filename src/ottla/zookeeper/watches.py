"""Which watches are armed at the server, so that they can be armed again on the next connection.

The rules are the server's own: a read of data or children arms its watch only if the node is there;
``Exists`` arms it in both cases, and a node that is not there is remembered apart, because after a
disconnect the server must be asked "was it made meanwhile?" instead of "was it changed?".
"""

from collections.abc import Iterator
from typing import Final

from ottla.zookeeper.jute import INT, LONG
from ottla.zookeeper.ops import (
    Children,
    Data,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Op,
    Result,
    WatchEvent,
    WatchKind,
    ZkCode,
)

SET_WATCHES_BYTES_MAX: Final = 128 * 1024
"""Kept well under the server's buffer limit, as any number of watches may be armed."""


class Watches:
    """The armed watches of one session, by kind."""

    __slots__ = ("children", "data", "missing")

    def __init__(self) -> None:
        self.data: set[str] = set()
        self.missing: set[str] = set()
        self.children: set[str] = set()

    def answered(self, op: Op, result: Result) -> None:
        """A read with a watch was answered: note what the server armed."""
        match op, result:
            case GetData(), Data():
                self.data.add(op.path)
            case Exists(), Found():
                self.data.add(op.path)
            case Exists(), Failed(code=ZkCode.NO_NODE):
                self.missing.add(op.path)
            case GetChildren(), Children():
                self.children.add(op.path)
            case _:
                pass

    def fired(self, event: WatchEvent) -> None:
        """The server told of a change and forgot the watches that it concerns."""
        if event.kind is WatchKind.CHILDREN_CHANGED:
            self.children.discard(event.path)
            return
        self.data.discard(event.path)
        self.missing.discard(event.path)
        if event.kind is WatchKind.DELETED:
            self.children.discard(event.path)

    def clear(self) -> None:
        """The session is over, and its watches with it."""
        self.data.clear()
        self.missing.clear()
        self.children.clear()

    def set_watches_bodies(self, last_zxid: int, chroot: str) -> Iterator[bytes]:
        """The SetWatches requests that arm everything again, in pieces; all name the same zxid.

        For each watch whose node changed after ``last_zxid`` the server sends the event at once.
        """
        kinds = (self.data, self.missing, self.children)
        rows = [(kind, path) for kind, paths in enumerate(kinds) for path in sorted(paths)]
        start = 0
        while start < len(rows):
            pieces: tuple[list[bytes], ...] = ([], [], [])
            size = 0
            while start < len(rows) and size < SET_WATCHES_BYTES_MAX:
                kind, path = rows[start]
                encoded = (chroot + path if path != "/" or not chroot else chroot).encode()
                pieces[kind].append(INT.pack(len(encoded)) + encoded)
                size += len(encoded) + 4
                start += 1
            vectors = [INT.pack(len(piece)) + b"".join(piece) for piece in pieces]
            yield LONG.pack(last_zxid) + b"".join(vectors)

    def __len__(self) -> int:
        return len(self.data) + len(self.missing) + len(self.children)
