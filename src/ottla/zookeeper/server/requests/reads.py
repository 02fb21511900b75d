"""Requests that change no node: what they answer, and which watches they arm."""

from collections.abc import Callable
from struct import Struct
from typing import Final

from ottla.model.errors import MalformedRequest
from ottla.zookeeper.jute import INT, LONG
from ottla.zookeeper.ops import OPEN, ZkCode
from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.requests import access, codec
from ottla.zookeeper.server.requests.access import may
from ottla.zookeeper.server.requests.codec import (
    BODY,
    GET_CHILDREN,
    GET_DATA,
    MULTI_END,
    MULTI_ERROR,
    MULTI_HEADER,
    read_path,
    read_text,
    read_texts,
    text,
    texts,
    watch_event,
)
from ottla.zookeeper.server.requests.prepare import Refused
from ottla.zookeeper.server.tree import CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED, Node, Tree
from ottla.zookeeper.server.watches import ANY_MODE, PERSISTENT, RECURSIVE, STANDARD, Watches

_GOT_DATA: Final = MULTI_HEADER.pack(GET_DATA, False, 0)
_GOT_CHILDREN: Final = MULTI_HEADER.pack(GET_CHILDREN, False, 0)
_NO_NODE: Final = MULTI_ERROR.pack(-1, False, ZkCode.NO_NODE, ZkCode.NO_NODE)
_NO_AUTH: Final = MULTI_ERROR.pack(-1, False, ZkCode.NO_AUTH, ZkCode.NO_AUTH)
_READ_PART: Final = Struct(">i?ii")
"""The header of a part, and the length of its path."""
_pack_int = INT.pack

CHILDREN_TYPE, DATA_TYPE, ANY_TYPE, PERSISTENT_TYPE, RECURSIVE_TYPE = 1, 2, 3, 4, 5
"""The kinds of watches that ``checkWatches`` and ``removeWatches`` name."""


class Reads:
    """Handlers by the number of a request: frame in, body of the answer out, ``Refused`` with a code."""

    __slots__ = ("_tree", "_watches", "handlers")

    def __init__(self, tree: Tree, watches: Watches[Connection]) -> None:
        self._tree = tree
        self._watches = watches
        self.handlers: dict[int, Callable[[Connection, bytes], bytes]] = {
            codec.EXISTS: self._exists,
            codec.GET_DATA: self._get_data,
            codec.GET_ACL: self._get_acl,
            codec.GET_CHILDREN: self._get_children,
            codec.GET_CHILDREN_2: self._get_children_2,
            codec.MULTI_READ: self._multi_read,
            codec.SYNC: self._sync,
            codec.SET_WATCHES: self._set_watches,
            codec.SET_WATCHES_2: self._set_watches_2,
            codec.ADD_WATCH: self._add_watch,
            codec.CHECK_WATCHES: self._check_watches,
            codec.REMOVE_WATCHES: self._remove_watches,
            codec.GET_EPHEMERALS: self._get_ephemerals,
            codec.GET_ALL_CHILDREN_NUMBER: self._get_all_children_number,
            codec.WHO_AM_I: self._who_am_i,
        }

    # ---- nodes ----------------------------------------------------------------------------------------

    def _readable(self, connection: Connection, path: str) -> Node:
        node = self._tree.nodes.get(path)
        if node is None:
            raise Refused(ZkCode.NO_NODE)
        if node.acl is not OPEN and not may(node.acl, access.READ, connection.identities):
            raise Refused(ZkCode.NO_AUTH)
        return node

    def _get_data(self, connection: Connection, frame: bytes) -> bytes:
        path, position = read_path(frame, BODY)
        wants_watch = frame[position]
        node = self._readable(connection, path)
        if wants_watch:
            self._watches.data.add(path, connection)
        return node.packed or node.pack()

    def _exists(self, connection: Connection, frame: bytes) -> bytes:
        path, position = read_path(frame, BODY)
        wants_watch = frame[position]
        if "\0" in path:
            raise Refused(ZkCode.BAD_ARGUMENTS)
        node = self._tree.nodes.get(path)
        if node is not None and not may(node.acl, access.READ, connection.identities):
            raise Refused(ZkCode.NO_AUTH)
        if wants_watch:
            self._watches.data.add(path, connection)
        if node is None:
            raise Refused(ZkCode.NO_NODE)
        return node.stat_bytes()

    def _get_children(self, connection: Connection, frame: bytes) -> bytes:
        return texts(self._children(connection, frame).children)

    def _get_children_2(self, connection: Connection, frame: bytes) -> bytes:
        node = self._children(connection, frame)
        return texts(node.children) + node.stat_bytes()

    def _children(self, connection: Connection, frame: bytes) -> Node:
        path, position = read_path(frame, BODY)
        wants_watch = frame[position]
        node = self._readable(connection, path)
        if wants_watch:
            self._watches.children.add(path, connection)
        return node

    def _multi_read(self, connection: Connection, frame: bytes) -> bytes:
        """Most of what a controller reads at a failover comes this way: one pass, no values between."""
        nodes, identities = self._tree.nodes, connection.identities
        head, end = _READ_PART.unpack_from, len(frame) - _READ_PART.size
        parts: list[bytes] = []
        position = BODY
        while position <= end:
            op, is_end, _, size = head(frame, position)
            if is_end:
                break
            start = position + _READ_PART.size
            stop = start + size
            if size < 0 or stop >= len(frame) or (op != GET_DATA and op != GET_CHILDREN):
                raise MalformedRequest(f"a multi-read cannot have a part of kind {op} and {size} bytes")
            position = stop + 1
            node = nodes.get(frame[start:stop].decode("utf-8", "replace"))
            if node is None:
                parts.append(_NO_NODE)
            elif node.acl is not OPEN and not may(node.acl, access.READ, identities):
                parts.append(_NO_AUTH)
            elif op == GET_DATA:
                parts += (_GOT_DATA, node.packed or node.pack())
            else:
                parts += (_GOT_CHILDREN, texts(node.children))
        if not MULTI_HEADER.unpack_from(frame, position)[1]:
            raise MalformedRequest("a multi-read has no end")
        parts.append(MULTI_END)
        return b"".join(parts)

    def _get_acl(self, connection: Connection, frame: bytes) -> bytes:
        path, _ = read_path(frame, BODY)
        node = self._tree.nodes.get(path)
        if node is None:
            raise Refused(ZkCode.NO_NODE)
        if not may(node.acl, access.READ | access.ADMIN, connection.identities):
            raise Refused(ZkCode.NO_AUTH)
        is_admin = may(node.acl, access.ADMIN, connection.identities)
        return codec.acl_bytes(node.acl if is_admin else access.masked(node.acl)) + node.stat_bytes()

    def _sync(self, connection: Connection, frame: bytes) -> bytes:
        return text(read_path(frame, BODY)[0])

    def _get_ephemerals(self, connection: Connection, frame: bytes) -> bytes:
        prefix, _ = read_text(frame, BODY)
        paths = self._tree.ephemerals.get(connection.session, {})
        if prefix is None or prefix.strip() in ("", "/"):
            return texts(list(paths))
        return texts([path for path in paths if path.startswith(prefix)])

    def _get_all_children_number(self, connection: Connection, frame: bytes) -> bytes:
        path, _ = read_path(frame, BODY)
        self._readable(connection, path)
        return _pack_int(self._tree.count_below(path))

    def _who_am_i(self, connection: Connection, frame: bytes) -> bytes:
        rows = [text(each[0]) + text(access.user_of(each)) for each in connection.identities]
        return _pack_int(len(rows)) + b"".join(rows)

    # ---- watches --------------------------------------------------------------------------------------

    def _set_watches(self, connection: Connection, frame: bytes) -> bytes:
        self._arm_again(connection, frame, kinds=3)
        return b""

    def _set_watches_2(self, connection: Connection, frame: bytes) -> bytes:
        self._arm_again(connection, frame, kinds=5)
        return b""

    def _arm_again(self, connection: Connection, frame: bytes, kinds: int) -> None:
        """A client is back and names its watches: what changed since that transaction is told at once."""
        (since,) = LONG.unpack_from(frame, BODY)
        position = BODY + 8
        named: list[list[str]] = [[], [], [], [], []]
        for kind in range(kinds):
            named[kind], position = read_texts(frame, position)
        nodes, watches = self._tree.nodes, self._watches
        for path in named[0]:
            node = nodes.get(path)
            if node is None:
                _tell(connection, DELETED, path)
            elif node.mzxid > since:
                _tell(connection, DATA_CHANGED, path)
            else:
                watches.data.add(path, connection)
        for path in named[1]:
            if path in nodes:
                _tell(connection, CREATED, path)
            else:
                watches.data.add(path, connection)
        for path in named[2]:
            node = nodes.get(path)
            if node is None:
                _tell(connection, DELETED, path)
            elif node.pzxid > since:
                _tell(connection, CHILDREN_CHANGED, path)
            else:
                watches.children.add(path, connection)
        for path in named[3]:
            watches.children.add(path, connection, PERSISTENT)
            watches.data.add(path, connection, PERSISTENT)
        for path in named[4]:
            watches.data.add(path, connection, RECURSIVE)

    def _add_watch(self, connection: Connection, frame: bytes) -> bytes:
        path, position = read_path(frame, BODY)
        (mode,) = INT.unpack_from(frame, position)
        if mode not in (0, 1):
            raise MalformedRequest(f"there is no kind of watch {mode}")
        self._watches.data.add(path, connection, RECURSIVE if mode else PERSISTENT)
        if mode == 0:
            self._watches.children.add(path, connection, PERSISTENT)
        return _pack_int(0)

    def _named_watch(self, frame: bytes) -> tuple[str, int]:
        path, position = read_path(frame, BODY)
        (kind,) = INT.unpack_from(frame, position)
        if not CHILDREN_TYPE <= kind <= RECURSIVE_TYPE:
            raise MalformedRequest(f"there is no kind of watch {kind}")
        return path, kind

    def _check_watches(self, connection: Connection, frame: bytes) -> bytes:
        path, kind = self._named_watch(frame)
        data, children = self._watches.data, self._watches.children
        has = {
            CHILDREN_TYPE: lambda: children.has(path, connection, STANDARD),
            DATA_TYPE: lambda: data.has(path, connection, STANDARD),
            ANY_TYPE: lambda: (
                children.has(path, connection, ANY_MODE) or data.has(path, connection, ANY_MODE)
            ),
            PERSISTENT_TYPE: lambda: data.has(path, connection, PERSISTENT),
            RECURSIVE_TYPE: lambda: data.has(path, connection, RECURSIVE),
        }
        if not has[kind]():
            raise Refused(ZkCode.NO_WATCHER)
        return b""

    def _remove_watches(self, connection: Connection, frame: bytes) -> bytes:
        path, kind = self._named_watch(frame)
        data, children = self._watches.data, self._watches.children
        is_gone = False
        if kind != DATA_TYPE and kind != RECURSIVE_TYPE:
            mode = {CHILDREN_TYPE: STANDARD, ANY_TYPE: ANY_MODE, PERSISTENT_TYPE: PERSISTENT}[kind]
            is_gone = children.remove(path, connection, mode)
        if kind != CHILDREN_TYPE:
            mode = {DATA_TYPE: STANDARD, ANY_TYPE: ANY_MODE, PERSISTENT_TYPE: PERSISTENT}.get(kind, RECURSIVE)
            is_gone = data.remove(path, connection, mode) or is_gone
        if not is_gone:
            raise Refused(ZkCode.NO_WATCHER)
        return b""


def _tell(connection: Connection, kind: int, path: str) -> None:
    connection.send(watch_event(kind, path.encode("utf-8", "replace"), -1))
