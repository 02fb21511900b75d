"""A ZooKeeper client of a test's own, down to the bytes: one request, its answer, and the events before it.

It shares no code with Ottla's client, and says of an answer what two servers must say alike.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.server import Server

PING_XID, EVENT_XID, AUTH_XID = -2, -1, -4
CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN = 1, 2, 3, 4, 5, 6, 7, 8
SYNC, PING, GET_CHILDREN_2, CHECK, MULTI, CREATE_2, RECONFIG = 9, 11, 12, 13, 14, 15, 16
CHECK_WATCHES, REMOVE_WATCHES, CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL, MULTI_READ = range(17, 23)
AUTH, SET_WATCHES, SASL, GET_EPHEMERALS, ALL_CHILDREN, SET_WATCHES_2, ADD_WATCH, WHO_AM_I = range(100, 108)
CLOSE = -11

Acl = tuple[int, str, str]
WORLD: tuple[Acl, ...] = ((31, "world", "anyone"),)


def integer(value: int) -> bytes:
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def text(value: str | bytes | None) -> bytes:
    """A counted text; bytes go as they are."""
    if value is None:
        return integer(-1)
    encoded = value if isinstance(value, bytes) else value.encode()
    return integer(len(encoded)) + encoded


def decoded(data: bytes) -> str:
    """A text; Java writes characters beyond 16 bits as two halves, which no other reader understands."""
    halves = data.decode("utf-8", "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16")


def texts(values: list[str]) -> bytes:
    return integer(len(values)) + b"".join(text(value) for value in values)


def acl_bytes(acl: tuple[Acl, ...] | None) -> bytes:
    if acl is None:
        return integer(-1)
    return integer(len(acl)) + b"".join(integer(p) + text(scheme) + text(name) for p, scheme, name in acl)


def create(path: str, data: bytes | None = b"", acl: tuple[Acl, ...] | None = WORLD, flags: int = 0) -> bytes:
    return text(path) + text(data) + acl_bytes(acl) + integer(flags)


def multi(*parts: tuple[int, bytes]) -> bytes:
    rows = [struct.pack(">i?i", op, False, -1) + body for op, body in parts]
    return b"".join(rows) + struct.pack(">i?i", -1, True, -1)


class Wire(Protocol):
    """A connection: bytes in, whole frames out."""

    def send(self, data: bytes) -> None: ...

    def frame(self) -> bytes | None:
        """The next frame; ``None`` once the server has hung up."""
        ...

    def close(self) -> None: ...


class SocketWire:
    """Over TCP."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # ``frame`` then tells
            self._socket.sendall(data)

    def frame(self) -> bytes | None:
        head = self._exactly(4)
        return None if head is None else self._exactly(struct.unpack(">i", head)[0])

    def _exactly(self, size: int) -> bytes | None:
        received = b""
        while len(received) < size:
            try:
                more = self._socket.recv(size - len(received))
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            received += more
        return received

    def close(self) -> None:
        self._socket.close()


class MemoryWire:
    """Straight into a server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.connection: Connection = server.connect("127.0.0.1")
        self._received = b""

    def send(self, data: bytes) -> None:
        self._server.receive(self.connection, data)

    def frame(self) -> bytes | None:
        self._received += b"".join(self.connection.take_out())
        if len(self._received) < 4:
            assert self.connection.is_closing, "the server did not answer"
            return None
        end = 4 + struct.unpack_from(">i", self._received)[0]
        whole, self._received = self._received[4:end], self._received[end:]
        return whole

    def close(self) -> None:
        self._server.lose(self.connection)


class Reply(NamedTuple):
    """An answer: what its header says, and the rest."""

    code: int
    zxid: int
    body: bytes


@dataclass
class RawClient:
    """One connection with its session."""

    wire: Wire
    session: int = 0
    password: bytes = bytes(16)
    timeout_ms: int = 0
    events: list[tuple[int, int, str]] = field(default_factory=list)
    """What came since they were taken: zxid, kind, path."""
    last_xid: int = 0

    def connect(self, timeout_ms: int = 30_000, last_zxid: int = 0) -> bool:
        """Begin or resume the session; whether it was granted."""
        body = struct.pack(">iqiq", 0, last_zxid, timeout_ms, self.session) + text(self.password) + b"\0"
        self.wire.send(integer(len(body)) + body)
        answer = self.wire.frame()
        if answer is None:
            return False
        _, self.timeout_ms, self.session = struct.unpack_from(">iiq", answer)
        self.password = answer[20:36]
        return self.session != 0

    def ask(self, op: int, body: bytes = b"", xid: int | None = None) -> Reply | None:
        """Send a request and wait for its answer; ``None`` if the server hangs up instead."""
        if xid is None:
            self.last_xid += 1
            xid = self.last_xid
        self.wire.send(integer(len(body) + 8) + integer(xid) + integer(op) + body)
        while (frame := self.wire.frame()) is not None:
            got, zxid, code = struct.unpack_from(">iqi", frame)
            if got == EVENT_XID:
                kind, _, size = struct.unpack_from(">iii", frame, 16)
                self.events.append((zxid, kind, decoded(frame[28 : 28 + size])))
                continue
            assert got == xid, f"asked {xid}, answered {got}"
            return Reply(code, zxid, frame[16:])
        return None

    def ping(self) -> Reply | None:
        """Hear everything that happened before this."""
        return self.ask(PING, xid=PING_XID)

    def log_in(self, scheme: str, credential: bytes) -> Reply | None:
        return self.ask(AUTH, integer(0) + text(scheme) + text(credential), xid=AUTH_XID)

    def taken_events(self) -> list[tuple[int, int, str]]:
        events, self.events = self.events, []
        return events


# ---- what two servers must say alike --------------------------------------------------------------------


class Stat(NamedTuple):
    """A stat without its times, which are each server's own."""

    czxid: int
    mzxid: int
    version: int
    cversion: int
    aversion: int
    owner: Any
    length: int
    children: int
    pzxid: int


class Answers:
    """Reads the bodies of one server's answers; zxids count from its first session, owners by their order."""

    def __init__(self, base_zxid: int = 0) -> None:
        self.base_zxid = base_zxid
        self.sessions: dict[int, int] = {}

    def zxid(self, zxid: int) -> int:
        return zxid - self.base_zxid if zxid > self.base_zxid else min(zxid, 0)

    def stat(self, body: bytes, at: int = 0) -> Stat:
        czxid, mzxid, _, _, version, cversion, aversion, owner, length, children, pzxid = struct.unpack_from(
            ">qqqqiiiqiiq", body, at
        )
        zxids = [self.zxid(value) for value in (czxid, mzxid, pzxid)]
        known = self.sessions.get(owner)
        shown = owner if known is None else f"session {known}"
        return Stat(zxids[0], zxids[1], version, cversion, aversion, shown, length, children, zxids[2])

    def read(self, op: int, reply: Reply | None) -> Any:
        """The whole answer in comparable form."""
        if reply is None:
            return "hung up"
        head = (reply.code, self.zxid(reply.zxid))
        if reply.code != 0 or not reply.body:
            return (*head, reply.body)
        return (*head, self._body(op, reply.body))

    def _body(self, op: int, body: bytes) -> Any:
        if op in (MULTI, MULTI_READ):
            return self._results(body)
        value, end = self._part(op, body, 0)
        return value if end == len(body) else (value, "and", body[end:])

    def _part(self, op: int, body: bytes, at: int) -> tuple[Any, int]:
        if op in (CREATE, SYNC):
            return _text(body, at)
        if op in (CREATE_2, CREATE_CONTAINER, CREATE_TTL):
            path, at = _text(body, at)
            return (path, self.stat(body, at)), at + 68
        if op in (EXISTS, SET_DATA, SET_ACL):
            return self.stat(body, at), at + 68
        if op == GET_DATA:
            data, at = _buffer(body, at)
            return (data, self.stat(body, at)), at + 68
        if op in (GET_CHILDREN, GET_EPHEMERALS):
            names, at = _texts(body, at)
            return sorted(names), at
        if op == GET_CHILDREN_2:
            names, at = _texts(body, at)
            return (sorted(names), self.stat(body, at)), at + 68
        if op == GET_ACL:
            entries, at = _acl(body, at)
            return (entries, self.stat(body, at)), at + 68
        if op == WHO_AM_I:
            return _pairs(body, at)
        return body[at:], len(body)

    def _results(self, body: bytes) -> list[Any]:
        results: list[Any] = []
        at = 0
        while True:
            op, is_end, code = struct.unpack_from(">i?i", body, at)
            at += 9
            if is_end:
                assert at == len(body), "nothing follows the end"
                return results
            if op == -1:
                results.append((op, code, struct.unpack_from(">i", body, at)[0]))
                at += 4
            elif op in (DELETE, CHECK):
                results.append((op, code))
            else:
                value, at = self._part(op, body, at)
                results.append((op, code, value))

    def events(self, client: RawClient) -> list[tuple[int, int, str]]:
        """What a client was told, in any order: one session's end changes several nodes at once."""
        return sorted((self.zxid(zxid), kind, path) for zxid, kind, path in client.taken_events())


def _buffer(body: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", body, at)
    return (None, at + 4) if size < 0 else (body[at + 4 : at + 4 + size], at + 4 + size)


def _text(body: bytes, at: int) -> tuple[str, int]:
    data, at = _buffer(body, at)
    return decoded(data or b""), at


def _texts(body: bytes, at: int) -> tuple[list[str], int]:
    (count,) = struct.unpack_from(">i", body, at)
    at += 4
    found = []
    for _ in range(count):
        value, at = _text(body, at)
        found.append(value)
    return found, at


def _pairs(body: bytes, at: int) -> tuple[list[tuple[str, str]], int]:
    (count,) = struct.unpack_from(">i", body, at)
    at += 4
    found = []
    for _ in range(count):
        scheme, at = _text(body, at)
        name, at = _text(body, at)
        found.append((scheme, name))
    return sorted(found), at


def _acl(body: bytes, at: int) -> tuple[list[Acl], int]:
    (count,) = struct.unpack_from(">i", body, at)
    at += 4
    found = []
    for _ in range(count):
        (permissions,) = struct.unpack_from(">i", body, at)
        scheme, at = _text(body, at + 4)
        name, at = _text(body, at)
        found.append((permissions, scheme, name))
    return found, at
