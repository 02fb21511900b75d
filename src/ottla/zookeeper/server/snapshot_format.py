"""ZooKeeper's snapshot as bytes: sessions, access control lists, nodes, and a seal.

The seal is the checksum of all before it, and a slash. Java's server adds sections behind it (a digest of the
tree, the last zxid), each with a seal of its own, and does without them where they are missing, as here.
"""

from collections.abc import Collection, Iterator, Mapping
from struct import Struct
from typing import Final
from zlib import adler32

from msgspec import Struct as Value

from ottla.zookeeper.jute import INT, LONG, Cursor, MalformedReply
from ottla.zookeeper.ops import OPEN, Acl
from ottla.zookeeper.server.txn_codec import acl_vector, buffer, text
from ottla.zookeeper.server.txns import StoredNode

_FILE_HEADER = Struct(">4siq")
_HEADER: Final = _FILE_HEADER.pack(b"ZKSN", 2, -1)
_MAGIC: Final = _HEADER[:8]
_SESSION = Struct(">qi")
_ACL_AND_STAT = Struct(">qqqqqiiiqq")
_ROOT: Final = ""
_END: Final = text("/")
_SEAL_SIZE: Final = LONG.size + len(_END)
_OPEN_ACL_ID: Final = -1
"""Everybody may do everything, without an entry in the table."""
_NOBODY: Final = (Acl(0, "world", "anyone"),)


class MalformedSnapshot(Exception):
    """These bytes are no whole snapshot."""


class Snapshot(Value, frozen=True):
    """What a snapshot holds: time-outs by session, and the nodes, parents before their children."""

    sessions: dict[int, int]
    nodes: Iterator[StoredNode]


class SnapshotEncoder:
    """Encodes a snapshot from front to back; what it returns is to be written in that order.

    ``acls`` are the lists that nodes had when it began. A node that was given another one since is written as
    open to everybody: the log has that change behind the snapshot's zxid and sets the list right.
    """

    __slots__ = ("_acl_ids", "_checksum", "_sessions")

    def __init__(self, sessions: Mapping[int, int], acls: Collection[tuple[Acl, ...]]) -> None:
        self._sessions = sessions
        self._acl_ids = {acl: number for number, acl in enumerate(acls, start=1)}
        self._checksum = 1

    def start(self) -> bytes:
        """All before the nodes."""
        sessions = [_SESSION.pack(session, timeout_ms) for session, timeout_ms in self._sessions.items()]
        acls = [LONG.pack(number) + acl_vector(acl) for acl, number in self._acl_ids.items()]
        counted = (INT.pack(len(sessions)), *sessions, INT.pack(len(acls)), *acls)
        return self._counted(_HEADER + b"".join(counted))

    def nodes(self, nodes: Collection[StoredNode]) -> bytes:
        """The next nodes; the root is the first of all."""
        return self._counted(b"".join([self._node(node) for node in nodes]))

    def end(self) -> bytes:
        """All behind the nodes."""
        self._counted(_END)
        return _END + LONG.pack(self._checksum) + _END

    def _node(self, node: StoredNode) -> bytes:
        return (
            text(_ROOT if node.path == "/" else node.path)
            + buffer(node.data)
            + _ACL_AND_STAT.pack(
                self._acl_ids.get(node.acl, _OPEN_ACL_ID),
                *(node.czxid, node.mzxid, node.ctime_ms, node.mtime_ms),
                *(node.version, node.cversion, node.aversion),
                *(node.ephemeral_owner, node.pzxid),
            )
        )

    def _counted(self, piece: bytes) -> bytes:
        self._checksum = adler32(piece, self._checksum)
        return piece


def decode_snapshot(content: bytes) -> Snapshot:
    """A snapshot whose last seal, which covers everything before it, is right."""
    if len(content) < len(_HEADER) or not content.startswith(_MAGIC):
        raise MalformedSnapshot("it does not begin as a snapshot")
    seal = len(content) - _SEAL_SIZE
    if not content.endswith(_END):
        raise MalformedSnapshot("its end is missing")
    if adler32(memoryview(content)[:seal]) != LONG.unpack_from(content, seal)[0]:
        raise MalformedSnapshot("its checksum is wrong")
    cursor = Cursor(content, len(_HEADER))
    try:
        sessions = {cursor.int64(): cursor.int32() for _ in range(cursor.count(_SESSION.size))}
        acls = {cursor.int64(): cursor.acl() for _ in range(cursor.count(12))}
    except MalformedReply as error:
        raise MalformedSnapshot(f"its checksum is right, but {error}") from None
    return Snapshot(sessions, _read_nodes(cursor, {**acls, _OPEN_ACL_ID: OPEN}))


def _read_nodes(cursor: Cursor, acls: Mapping[int, tuple[Acl, ...]]) -> Iterator[StoredNode]:
    """The nodes. Java's server may name a list that is newer than its table: the log will set that node's."""
    try:
        while (path := cursor.text()) != "/":
            data = cursor.buffer()
            if cursor.left < _ACL_AND_STAT.size:
                raise MalformedSnapshot(f"its checksum is right, but the node {path} is cut short")
            acl_id, *stat = _ACL_AND_STAT.unpack_from(cursor.frame, cursor.position)
            cursor.position += _ACL_AND_STAT.size
            yield StoredNode(path or "/", data, acls.get(acl_id, _NOBODY), *stat)
    except MalformedReply as error:
        raise MalformedSnapshot(f"its checksum is right, but {error}") from None
