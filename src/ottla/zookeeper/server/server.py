"""The server: what arrives on connections, one request after another, and what leaves on them.

Whoever hosts it calls ``begin_turn``, then hands over what happened, writes the new ``records`` to the log,
and only then sends what waits on the connections in ``dirty``.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

from ottla.model.errors import MalformedRequest
from ottla.zookeeper.jute import INT
from ottla.zookeeper.ops import OPEN, ZkCode
from ottla.zookeeper.server.connection import OUT_BYTES_MAX, Connection
from ottla.zookeeper.server.requests import access, codec
from ottla.zookeeper.server.requests.access import log_in, may
from ottla.zookeeper.server.requests.codec import BODY, REPLY, REPLY_HEADER_BYTES, REQUEST_HEADER, text
from ottla.zookeeper.server.requests.prepare import Refused, prepare
from ottla.zookeeper.server.requests.reads import Reads
from ottla.zookeeper.server.sessions import Expiry, first_session_id, password_of
from ottla.zookeeper.server.tree import Tree, ttl_of
from ottla.zookeeper.server.txns import (
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    Txn,
    TxnHeader,
)
from ottla.zookeeper.server.watches import Watches

WORDS: Final = frozenset(
    ("conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "lead", "mntr", "ruok")
) | {"srst", "srvr", "stat", "stmk", "wchc", "wchp", "wchs"}
"""What may come instead of a first frame; also what this server does not answer is no frame."""

_NO_PASSWORD: Final = bytes(16)
_PART_ERROR: Final = codec.MULTI_ERROR
_CHECKED: Final = codec.MULTI_HEADER.pack(codec.CHECK, False, 0)
_DELETED: Final = codec.MULTI_HEADER.pack(codec.DELETE, False, 0)
_DATA_SET: Final = codec.MULTI_HEADER.pack(codec.SET_DATA, False, 0)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The settings that clients notice."""

    tick_ms: int = 2_000
    session_ms_min: int = 0
    """0: two ticks."""
    session_ms_max: int = 0
    """0: twenty ticks."""
    frame_bytes_max: int = 0xFFFFF
    super_digest: str = ""
    container_check_ms: int = 60_000
    """How often empty containers and nodes whose time is over are removed."""

    def negotiated_ms(self, wanted_ms: int) -> int:
        """The time-out that a client gets."""
        least = self.session_ms_min or 2 * self.tick_ms
        return max(least, min(wanted_ms, self.session_ms_max or 20 * self.tick_ms))


class Server:
    """One ZooKeeper server. Its clock stands still during a turn."""

    def __init__(self, config: ServerConfig, tree: Tree, now_ms: int, wall_ms: int) -> None:
        """Serve a tree; its sessions get their whole time-out again."""
        self.config = config
        self.tree = tree
        self.now_ms = now_ms
        self.wall_ms = wall_ms
        self.watches: Watches[Connection] = Watches()
        self.expiry = Expiry(config.tick_ms, now_ms)
        self.connections: dict[Connection, None] = {}
        self.connection_of: dict[int, Connection] = {}
        self.records: list[tuple[TxnHeader, Txn]] = []
        """Transactions that are not in the log yet."""
        self.dirty: dict[Connection, None] = {}
        """Connections on which something waits to be sent, or that are to be closed."""
        self.asked: list[tuple[Connection, str]] = []
        """Four-letter words that are to be answered."""
        self._reads = Reads(tree, self.watches).handlers
        self._last_session = first_session_id(wall_ms, tree.sessions)
        self._containers_checked_ms = now_ms
        for session, timeout_ms in tree.sessions.items():
            self.expiry.touch(session, timeout_ms, now_ms)

    # ---- from the host --------------------------------------------------------------------------------

    def begin_turn(self, now_ms: int, wall_ms: int) -> None:
        """Set the clocks: one that never goes back, for sessions, and one for the nodes' times."""
        self.now_ms = now_ms
        self.wall_ms = wall_ms

    def connect(self, address: str, port: int = 0) -> Connection:
        """A client connected."""
        connection = Connection(address, port, self.now_ms)
        self.connections[connection] = None
        return connection

    def lose(self, connection: Connection) -> None:
        """A connection is gone; its session waits for another one until it expires."""
        self.connections.pop(connection, None)
        self.dirty.pop(connection, None)
        self._detach(connection)

    def _detach(self, connection: Connection) -> None:
        connection.is_closing = True
        self.watches.remove_watcher(connection)
        if self.connection_of.get(connection.session) is connection:
            del self.connection_of[connection.session]

    def hang_up(self, connection: Connection) -> None:
        """Take nothing more from a connection, and close it after what waits for it."""
        self.dirty[connection] = None
        self._detach(connection)

    def receive(self, connection: Connection, data: bytes) -> None:
        """Serve what came, unless too much waits for this client: then call again when it was sent."""
        if connection.is_closing:
            return
        data = connection.take(data)
        position, end = 0, len(data)
        if connection.session:
            self.expiry.touch(connection.session, connection.timeout_ms, self.now_ms)
        while not connection.is_closing:
            if end - position < 4:
                if position < end:
                    connection.keep(data[position:], 4)
                break
            if connection.out_bytes >= OUT_BYTES_MAX:
                connection.waiting = data[position:]
                break
            (size,) = INT.unpack_from(data, position)
            if not connection.has_session and self._is_word(connection, data[position : position + 4]):
                break
            if not 0 <= size <= self.config.frame_bytes_max:
                self.hang_up(connection)
                break
            start, position = position + 4, position + 4 + size
            if position > end:
                connection.keep(data[start - 4 :], size + 4)
                break
            connection.received += 1
            self._frame(connection, data[start:position])
        if connection.out:
            self.dirty[connection] = None

    def tick(self) -> None:
        """Time has passed: end sessions that were silent for too long, and containers that are empty."""
        for session in self.expiry.expired(self.now_ms):
            if session in self.tree.sessions:
                self._expire(session)
        if self.now_ms - self._containers_checked_ms >= self.config.container_check_ms:
            self._containers_checked_ms = self.now_ms
            self.delete_containers()

    def next_tick_ms(self) -> int:
        """When ``tick`` must be called at the latest."""
        containers_ms = self._containers_checked_ms + self.config.container_check_ms
        expiry_ms = self.expiry.next_ms()
        return containers_ms if expiry_ms is None else min(containers_ms, expiry_ms)

    # ---- sessions -------------------------------------------------------------------------------------

    def _is_word(self, connection: Connection, word: bytes) -> bool:
        """Whether a new connection asks with a word instead of a frame."""
        name = word.decode("latin-1")
        if name not in WORDS:
            return False
        self.asked.append((connection, name))
        self.hang_up(connection)
        return True

    def _frame(self, connection: Connection, frame: bytes) -> None:
        if not connection.has_session:
            self._open(connection, frame)
            return
        try:
            xid, op = REQUEST_HEADER.unpack_from(frame)
        except struct.error:
            self.hang_up(connection)
            return
        read = self._reads.get(op)
        if read is not None:
            try:
                self._answer(connection, xid, read(connection, frame))
            except Refused as refused:
                self._refuse(connection, xid, refused.code)
            except (MalformedRequest, struct.error, IndexError):
                self._refuse(connection, xid, ZkCode.MARSHALLING_ERROR)
        elif op == codec.MULTI:
            self._multi(connection, xid, frame)
        elif op in codec.WRITES:
            self._write(connection, xid, op, frame)
        elif op == codec.PING:
            connection.send(REPLY.pack(REPLY_HEADER_BYTES, -2, self.tree.zxid, 0))
        elif op == codec.CLOSE:
            self._close(connection, xid)
        elif op == codec.AUTH:
            self._log_in(connection, xid, frame)
        else:
            self._refuse_kind(connection, xid, op)

    def _open(self, connection: Connection, frame: bytes) -> None:
        """The first frame: begin a session, or resume one."""
        try:
            asked = codec.read_connect(frame)
        except (MalformedRequest, struct.error):
            self.hang_up(connection)
            return
        if asked.last_zxid > self.tree.zxid:
            self.hang_up(connection)  # it has seen what we have lost
            return
        connection.timeout_ms = self.config.negotiated_ms(asked.timeout_ms)
        session = asked.session
        if session == 0:
            self._last_session += 1
            session = self._last_session
            self.begin_session(session, connection.timeout_ms)
        elif session not in self.tree.sessions or asked.password != password_of(session):
            connection.send(codec.connect_reply(0, 0, _NO_PASSWORD, asked.has_read_only))
            self.hang_up(connection)
            return
        self.attach(connection, session, connection.timeout_ms)
        password = password_of(session)
        connection.send(codec.connect_reply(connection.timeout_ms, session, password, asked.has_read_only))

    def begin_session(self, session: int, timeout_ms: int) -> None:
        """A session begins, under an id that was never used."""
        self._log(session, 0, CreateSessionTxn(timeout_ms))

    def attach(self, connection: Connection, session: int, timeout_ms: int) -> None:
        """A session goes on over this connection, and over no other one any more."""
        before = self.connection_of.get(session)
        if before is not None:
            self.hang_up(before)
        connection.session, connection.has_session, connection.timeout_ms = session, True, timeout_ms
        self.connection_of[session] = connection
        self.expiry.touch(session, timeout_ms, self.now_ms)

    def end_session(self, session: int, cxid: int = 0) -> None:
        """A session is closed or expired: its nodes go, and nobody can resume it."""
        self.expiry.forget(session)
        self._log(session, cxid, CloseSessionTxn(tuple(self.tree.ephemerals.get(session, ()))))

    def _expire(self, session: int) -> None:
        self.end_session(session)
        connection = self.connection_of.get(session)
        if connection is not None:
            self.hang_up(connection)

    def _close(self, connection: Connection, xid: int) -> None:
        self.end_session(connection.session, xid)
        self._answer(connection, xid, b"")
        self.hang_up(connection)

    def _log_in(self, connection: Connection, xid: int, frame: bytes) -> None:
        try:
            scheme, position = codec.read_text(frame, BODY + 4)
            credential, _ = codec.read_buffer(frame, position)
        except (MalformedRequest, struct.error):
            self.hang_up(connection)
            return
        config = self.config
        identities = log_in(scheme or "", credential or b"", connection.address, config.super_digest)
        code = ZkCode.OK if identities is not None else ZkCode.AUTH_FAILED
        connection.send(REPLY.pack(REPLY_HEADER_BYTES, xid, 0, code))
        if identities is None:
            self.hang_up(connection)
            return
        connection.identities += [each for each in identities if each not in connection.identities]

    def _refuse_kind(self, connection: Connection, xid: int, op: int) -> None:
        """A kind of request that this server does not serve: a code, and then it hangs up, as Java's."""
        if op == codec.RECONFIG:
            self._log(connection.session, xid, ErrorTxn(ZkCode.RECONFIG_DISABLED))
            self._refuse(connection, xid, ZkCode.RECONFIG_DISABLED)
            return
        connection.send(REPLY.pack(REPLY_HEADER_BYTES, xid, -1, ZkCode.UNIMPLEMENTED))
        self.hang_up(connection)

    # ---- writes ---------------------------------------------------------------------------------------

    def _header(self, session: int, cxid: int) -> TxnHeader:
        return TxnHeader(session, cxid, self.tree.zxid + 1, self.wall_ms)

    def _log(self, session: int, cxid: int, txn: Txn) -> None:
        """Carry out a transaction and tell those who watch."""
        header = self._header(session, cxid)
        self.tree.apply(header, txn)
        self.records.append((header, txn))
        if self.tree.changes:
            self._tell_watchers(header.zxid)

    def _write(self, connection: Connection, xid: int, op: int, frame: bytes) -> None:
        try:
            request, _ = codec.WRITES[op](op, frame, BODY)
        except (MalformedRequest, struct.error):
            self._refuse(connection, xid, ZkCode.MARSHALLING_ERROR)
            return
        try:
            txn = prepare(self.tree, connection.identities, request)
        except Refused as refused:
            self._log(connection.session, xid, ErrorTxn(refused.code))
            self._refuse(connection, xid, refused.code)
            return
        self._log(connection.session, xid, txn)
        self._answer(connection, xid, self._body(op, txn))

    def _body(self, op: int, txn: Any) -> bytes:
        """What follows the header in the answer to a write."""
        if type(txn) is DeleteTxn:
            return b""
        if op == codec.CREATE:
            return text(txn.path)
        stat = self.tree.nodes[txn.path].stat_bytes()
        if type(txn) is SetDataTxn or type(txn) is SetAclTxn:
            return stat
        return text(txn.path) + stat

    def _multi(self, connection: Connection, xid: int, frame: bytes) -> None:
        session, tree = connection.session, self.tree
        try:
            requests = codec.read_multi(frame, BODY)
        except codec.NullAcl:
            self._refuse(connection, xid, ZkCode.MARSHALLING_ERROR)
            return
        except (MalformedRequest, struct.error):
            self._log(session, xid, ErrorTxn(ZkCode.MARSHALLING_ERROR))
            self._refuse(connection, xid, ZkCode.MARSHALLING_ERROR)
            return
        header = self._header(session, xid)
        txns: list[Txn] = []
        bodies: list[bytes] = []
        try:
            for request in requests:
                txn = prepare(tree, connection.identities, request)
                tree.apply_part(header, txn)
                txns.append(txn)
                bodies.append(self._part_body(request[0], txn))
        except Refused as refused:
            tree.undo_parts(header)
            failed = len(txns)
            codes = [0] * failed + [int(refused.code)]
            codes += [int(ZkCode.RUNTIME_INCONSISTENCY)] * (len(requests) - failed - 1)
            self.records.append((header, MultiTxn(tuple(ErrorTxn(code) for code in codes))))
            bodies = [_PART_ERROR.pack(-1, False, code, code) for code in codes]
        else:
            tree.keep_parts(header)
            self.records.append((header, MultiTxn(tuple(txns))))
            if tree.changes:
                self._tell_watchers(header.zxid)
        bodies.append(codec.MULTI_END)
        self._answer(connection, xid, b"".join(bodies))

    def _part_body(self, op: int, txn: Any) -> bytes:
        kind = type(txn)
        if kind is SetDataTxn:
            return _DATA_SET + self.tree.nodes[txn.path].stat_bytes()
        if kind is DeleteTxn:
            return _DELETED
        if kind is CreateTxn and op == codec.CREATE:
            return codec.MULTI_HEADER.pack(codec.CREATE, False, 0) + text(txn.path)
        if kind is CreateTxn or kind is CreateTtlTxn or kind is CreateContainerTxn:
            stat = self.tree.nodes[txn.path].stat_bytes()
            return codec.MULTI_HEADER.pack(codec.CREATE_2, False, 0) + text(txn.path) + stat
        return _CHECKED

    def delete_containers(self) -> None:
        """Remove containers whose last child has gone, and nodes whose time to live is over."""
        tree = self.tree
        due = [
            path for path in tree.containers if not (node := tree.nodes[path]).children and node.cversion > 0
        ]
        due += [
            path
            for path in tree.with_ttl
            if not (node := tree.nodes[path]).children and self.wall_ms - node.mtime_ms > ttl_of(node.owner)
        ]
        for path in due:
            self._log(0, 0, DeleteTxn(path))

    # ---- what leaves ----------------------------------------------------------------------------------

    def _answer(self, connection: Connection, xid: int, body: bytes) -> None:
        connection.send(REPLY.pack(REPLY_HEADER_BYTES + len(body), xid, self.tree.zxid, 0) + body)

    def _refuse(self, connection: Connection, xid: int, code: int) -> None:
        connection.send(REPLY.pack(REPLY_HEADER_BYTES, xid, self.tree.zxid, code))

    def _tell_watchers(self, zxid: int) -> None:
        changes, self.tree.changes = self.tree.changes, []
        watches = self.watches
        if not watches.data.by_path and not watches.children.by_path:
            return
        for kind, path, acl in changes:
            told = watches.fire(kind, path)
            if not told:
                continue
            event = codec.watch_event(kind, path.encode("utf-8", "replace"), zxid)
            for connection in told:
                if acl is OPEN or may(acl, access.READ, connection.identities):
                    connection.send(event)
                    self.dirty[connection] = None
