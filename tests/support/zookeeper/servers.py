"""Servers of an ensemble in a test's hand, down to their bytes: they lag, hang up, and lose their quorum."""

from __future__ import annotations

import struct
from collections import deque

from ottla.sim.machine.zookeeper_server import Fired, ZooKeeperServer
from ottla.zookeeper.connect_string import Host
from ottla.zookeeper.jute import Cursor
from ottla.zookeeper.ops import (
    Children,
    Created,
    Data,
    DataSet,
    Failed,
    Found,
    Op,
    Result,
)
from ottla.zookeeper.protocol import CODES, READS, OpCode, encode_op
from ottla.zookeeper.watches import Watches
from support.zookeeper.bytes import (
    PASSWORD,
    TIMEOUT_MS,
    buffer_bytes,
    frame,
    notification,
    reply,
    stat_bytes,
    text_bytes,
)

Transaction = tuple[str, int, Op | None]
"""What happens (``open``, ``end`` or ``write``), in which session, and the write."""


class Ensemble:
    """One history, and servers that know it as far as they have come."""

    def __init__(self, hosts: tuple[Host, ...]) -> None:
        self.history: list[Transaction] = []
        self.has_quorum = True
        self.refused_as_ahead = 0
        """How often a server hung up on a client that had seen more than it."""
        self.sessions: set[int] = set()
        self.ended: set[int] = set()
        self.known: dict[tuple[int, bytes], Op] = {}
        """Requests by their bytes, so that servers need not decode them."""
        self.servers = {host: Server(self) for host in hosts}
        self._last_session = 0

    def expect(self, op: Op) -> None:
        """The client will ask this."""
        self.known[CODES[type(op)], encode_op(op)] = op

    def open_session(self) -> int:
        self._last_session += 1
        self.sessions.add(self._last_session)
        self.history.append(("open", self._last_session, None))
        return self._last_session

    def end_session(self, session: int) -> None:
        if session in self.sessions:
            self.sessions.discard(session)
            self.ended.add(session)
            self.history.append(("end", session, None))

    def write(self, op: Op, session: int) -> None:
        self.history.append(("write", session, op))

    def newest(self) -> ZooKeeperServer:
        """The tree of a server that knows everything."""
        server = Server(self)
        server.catch_up()
        return server.tree


class Server:
    """One server: a tree that is behind the history, and at most one connection of the client under test."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.tree = ZooKeeperServer()
        self.position = 0
        self.is_down = False
        self.session: int | None = None
        self.outgoing: deque[bytes] = deque()
        self.is_hung_up = False
        self._received = b""

    def accept(self) -> None:
        """The client has connected."""
        self.hang_up()
        self.is_hung_up = False

    def hang_up(self) -> None:
        """The connection is over, and its watches with it."""
        if self.session is not None:
            self.tree.connect(self.session)
        self.session = None
        self.outgoing.clear()
        self._received = b""
        self.is_hung_up = True

    def catch_up(self, to: int | None = None) -> Result | None:
        """Learn the history so far; the outcome of the last transaction."""
        result: Result | None = None
        end = len(self.ensemble.history) if to is None else to
        for kind, session, op in self.ensemble.history[self.position : end]:
            fired: list[Fired] = []
            if kind == "open":
                self.tree.open_session(session)
            elif kind == "end":
                fired = self.tree.end_session(session)
            elif op is not None:
                result, fired = self.tree.apply(op, session, 1)
            self._tell(fired)
        self.position = max(self.position, end)
        return result

    def _tell(self, fired: list[Fired]) -> None:
        for session, event in fired:
            if session == self.session:
                self.outgoing.append(notification(event.kind, event.path, self.tree.zxid))

    def receive(self, data: bytes) -> None:
        """The client sent this."""
        self._received += data
        while len(self._received) >= 4 and not self.is_hung_up:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) < 4 + size:
                return
            body, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            if self.session is None:
                self._connect(body)
            else:
                self._serve(body)

    def _connect(self, body: bytes) -> None:
        _, zxid, _, session = struct.unpack_from(">iqiq", body)
        if not self.ensemble.has_quorum or zxid > self.tree.zxid:
            self.ensemble.refused_as_ahead += self.ensemble.has_quorum
            self.hang_up()
            return
        if session == 0:
            session = self.ensemble.open_session()
            self.catch_up()
        elif session not in self.ensemble.sessions:
            session = 0
        self.session = session
        head = struct.pack(">iiq", 0, TIMEOUT_MS if session else 0, session)
        self.outgoing.append(frame(head + buffer_bytes(PASSWORD) + b"\0"))

    def _serve(self, body: bytes) -> None:
        xid, code = struct.unpack_from(">ii", body)
        if not self.ensemble.has_quorum or self.session not in self.ensemble.sessions:
            self.hang_up()
            return
        result: Result | None = None
        if code == OpCode.SET_WATCHES:
            self._set_watches(Cursor(body, 8))
        elif code == OpCode.CLOSE:
            self.ensemble.end_session(self.session)
        elif code != OpCode.PING:
            op = self.ensemble.known[code, body[8:]]
            if type(op) in READS:
                result, fired = self.tree.apply(op, self.session, 1)
                self._tell(fired)
            else:
                self.ensemble.write(op, self.session)
                result = self.catch_up()
        error = int(result.code) if isinstance(result, Failed) else 0
        self.outgoing.append(reply(xid, _body(result), zxid=self.tree.zxid, code=error))

    def _set_watches(self, cursor: Cursor) -> None:
        zxid = cursor.int64()
        named = Watches()
        named.data, named.missing, named.children = (set(cursor.names()) for _ in range(3))
        assert self.session is not None
        self._tell(self.tree.watch_again(self.session, zxid, named))


def _body(result: Result | None) -> bytes:
    match result:
        case Data():
            return buffer_bytes(result.data) + stat_bytes(result.stat)
        case Found() | DataSet():
            return stat_bytes(result.stat)
        case Created():
            return text_bytes(result.path) + stat_bytes(result.stat)
        case Children():
            names = b"".join(text_bytes(name) for name in result.names)
            return struct.pack(">i", len(result.names)) + names + stat_bytes(result.stat)
        case _:
            return b""
