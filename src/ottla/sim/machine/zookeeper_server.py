"""The built-in keeper's server, in the simulation's hand: operations in, results and fired watches out.

It is the server that runs behind sockets, bytes and all. Here nothing takes time or gets lost: delay,
disconnection and expiry are the simulated service's business. Sessions have the numbers that they are given.
"""

from typing import NamedTuple

from ottla.zookeeper.jute import INT
from ottla.zookeeper.ops import Op, Result, WatchEvent
from ottla.zookeeper.protocol import (
    CODES,
    XID_NOTIFICATION,
    XID_SET_WATCHES,
    OpCode,
    encode_op,
    frame_request,
    read_header,
    read_result,
    read_watch_event,
)
from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.server import Server, ServerConfig
from ottla.zookeeper.server.tree import Node, Tree
from ottla.zookeeper.watches import Watches

NEVER_MS = 2**40
"""No session expires by the server's own clock."""
XID = 1


class Fired(NamedTuple):
    """A watch that fired, and whose it was."""

    session: int
    event: WatchEvent


class ZooKeeperServer:
    """The state all servers of an ensemble agree on, and one connection for each session."""

    def __init__(self) -> None:
        self._server = Server(ServerConfig(frame_bytes_max=2**31 - 1), Tree(), now_ms=0, wall_ms=0)

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes by their paths."""
        return self._server.tree.nodes

    @property
    def zxid(self) -> int:
        """The last transaction."""
        return self._server.tree.zxid

    # -- sessions ----------------------------------------------------------------------------

    def open_session(self, session: int) -> None:
        """A session begins; its number is the caller's choice, never zero and never used twice."""
        assert session not in self._server.tree.sessions, "a session is opened once"
        self._server.begin_session(session, NEVER_MS)

    def connect(self, session: int) -> Connection:
        """The session goes on over another connection; the watches of the one before are gone.

        A server that is behind may not have heard of the session yet.
        """
        before = self._server.connection_of.get(session)
        if before is not None:
            self._server.lose(before)
        connection = self._server.connect("127.0.0.1")
        self._server.attach(connection, session, NEVER_MS)
        return connection

    def has_session(self, session: int) -> bool:
        return session in self._server.tree.sessions

    def end_session(self, session: int) -> list[Fired]:
        """A session is closed or expires: its ephemeral nodes go, and its watches."""
        connection = self._server.connection_of.get(session)
        if connection is not None:
            self._server.lose(connection)
        self._server.end_session(session)
        return self._take_fired()

    # -- operations --------------------------------------------------------------------------

    def apply(self, op: Op, session: int, now_ms: int) -> tuple[Result, list[Fired]]:
        """Carry out one operation of a live session; the watches it fires come with the result."""
        frame, fired = self._ask(session, XID, CODES[type(op)], encode_op(op), now_ms)
        _, _, code = read_header(frame)
        return read_result(op, code, frame, ""), fired

    def watch_again(self, session: int, last_zxid: int, watches: Watches) -> list[Fired]:
        """A client is back and names the watches it holds: what changed since then fires at once."""
        self.connect(session)
        fired: list[Fired] = []
        for body in watches.set_watches_bodies(last_zxid, ""):
            fired += self._ask(session, XID_SET_WATCHES, OpCode.SET_WATCHES, body, self._server.wall_ms)[1]
        return fired

    def _ask(self, session: int, xid: int, code: int, body: bytes, now_ms: int) -> tuple[bytes, list[Fired]]:
        self._server.begin_turn(0, now_ms)
        connection = self._server.connection_of.get(session) or self.connect(session)
        self._server.receive(connection, frame_request(xid, code, body))
        return connection.out.pop()[4:], self._take_fired()

    def _take_fired(self) -> list[Fired]:
        self._server.records.clear()
        dirty, self._server.dirty = self._server.dirty, {}
        return [fired for connection in dirty for fired in _events(connection)]


def _events(connection: Connection) -> list[Fired]:
    """The notifications that wait on a connection; each is a frame of its own."""
    found: list[Fired] = []
    for sent in connection.take_out():
        frame = sent[INT.size :]
        xid, _, _ = read_header(frame)
        assert xid == XID_NOTIFICATION, "answers were taken already"
        event = read_watch_event(frame, "")
        assert event is not None, "the server fires known kinds alone"
        found.append(Fired(connection.session, event))
    return found
