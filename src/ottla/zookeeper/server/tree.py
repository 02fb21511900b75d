"""The nodes, and the one door through which they change: ``apply``, alike for requests and for replay.

A transaction may be replayed over a state that already holds it, or later ones: snapshots are written while
requests go on. Replay therefore never fails, and ends in the state that the last transaction left.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ottla.zookeeper.jute import INT, STAT
from ottla.zookeeper.ops import OPEN, READ_BY_ALL, Acl, Stat
from ottla.zookeeper.server.txns import (
    CheckTxn,
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
    StoredNode,
    Txn,
    TxnHeader,
)

CREATED: Final = 1
DELETED: Final = 2
DATA_CHANGED: Final = 3
CHILDREN_CHANGED: Final = 4

CONTAINER_OWNER: Final = -(2**63)
TTL_MAX_MS: Final = 2**40 - 1
_TTL_MASK: Final = -(2**56)
_TTL_RESERVED: Final = 0xFFFF << 40

SPECIAL_PATHS: Final = frozenset({"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"})
"""Nodes that are always there and cannot be deleted."""

Change = tuple[int, str, tuple[Acl, ...]]
"""What watches are told: the kind, the path, and the list that says who may read it."""

PACKED_BYTES_MAX: Final = 1_024
"""Larger answers are not kept: joining them costs less than the memory."""

NO_CHILDREN: Final[dict[str, None]] = {}
"""Shared by all nodes without children; never written to."""


def ttl_owner(ttl_ms: int) -> int:
    """How a node's time to live is kept: as its owner."""
    return _TTL_MASK | ttl_ms


def ttl_of(owner: int) -> int:
    """The time to live that an owner stands for; 0 for every other owner."""
    return owner & TTL_MAX_MS if owner & _TTL_MASK == _TTL_MASK and not owner & _TTL_RESERVED else 0


def is_session(owner: int) -> bool:
    """Whether an owner is a session: its node is ephemeral, and can have no children."""
    return owner != 0 and owner != CONTAINER_OWNER and not ttl_of(owner)


class Node:
    """One znode; ``cversion`` counts the children ever made, which numbers the sequential ones."""

    __slots__ = (
        "acl",
        "aversion",
        "children",
        "ctime_ms",
        "cversion",
        "czxid",
        "data",
        "mtime_ms",
        "mzxid",
        "owner",
        "packed",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes | None, acl: tuple[Acl, ...], owner: int, zxid: int, time_ms: int) -> None:
        self.data = data
        self.acl = acl
        self.owner = owner
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = time_ms
        self.version = self.cversion = self.aversion = 0
        self.children = NO_CHILDREN
        self.packed: bytes | None = None
        """Data and stat as they were read last; whatever changes one of them forgets it."""

    def stat(self) -> Stat:
        """What ZooKeeper knows of the node besides its data."""
        return Stat(*STAT.unpack(self.stat_bytes()))

    def stat_bytes(self) -> bytes:
        """The stat as it goes over the wire."""
        data, children, owner = self.data, len(self.children), self.owner
        if owner < 0 and not is_session(owner):
            owner = 0  # a container's mark and a time to live are the server's own
        return STAT.pack(
            self.czxid,
            self.mzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            2 * self.cversion - children,
            self.aversion,
            owner,
            0 if data is None else len(data),
            children,
            self.pzxid,
        )

    def pack(self) -> bytes:
        """Data and stat as they go over the wire."""
        data = self.data
        packed = (b"\xff\xff\xff\xff" if data is None else INT.pack(len(data)) + data) + self.stat_bytes()
        if len(packed) <= PACKED_BYTES_MAX:
            self.packed = packed
        return packed


Undo = Callable[[], None]


class Tree:
    """All nodes, the sessions that are not over, and which nodes end with their session."""

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, Node] = {}
        self.sessions: dict[int, int] = {}
        """The time-out of each, in milliseconds."""
        self.ephemerals: dict[int, dict[str, None]] = {}
        self.containers: dict[str, None] = {}
        self.with_ttl: dict[str, None] = {}
        self.changes: list[Change] = []
        """What was changed and watches have not been told of."""
        self._acls: dict[tuple[Acl, ...], tuple[Acl, ...]] = {OPEN: OPEN}
        self._undo: list[tuple[Any, ...]] | None = None
        self._doors: dict[type[Any], Callable[[TxnHeader, Any], None]] = {
            CreateTxn: self._apply_create,
            CreateContainerTxn: self._apply_create_container,
            CreateTtlTxn: self._apply_create_ttl,
            DeleteTxn: self._apply_delete,
            SetDataTxn: self._apply_set_data,
            SetAclTxn: self._apply_set_acl,
            CheckTxn: self._apply_nothing,
            ErrorTxn: self._apply_nothing,
            MultiTxn: self._apply_multi,
            CreateSessionTxn: self._apply_create_session,
            CloseSessionTxn: self._apply_close_session,
        }
        self._plant()

    def _plant(self) -> None:
        """Java's server begins with these nodes, and without a transaction that made them."""
        root = Node(b"", OPEN, 0, 0, 0)
        self.nodes = {"": root, "/": root}
        for path in ("/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
            self.nodes[path] = Node(b"", OPEN, 0, 0, 0)
            self._link(path)
        config = self.nodes["/zookeeper/config"]
        config.acl, config.aversion = self.shared(READ_BY_ALL), -1

    def shared(self, acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
        """The one copy of a list that many nodes have."""
        return self._acls.setdefault(acl, acl)

    def count_below(self, path: str) -> int:
        """How many nodes are below a path."""
        if path == "/":
            return len(self.nodes) - 2
        prefix = path + "/"
        return sum(1 for each in self.nodes if each.startswith(prefix))

    # ---- changing -------------------------------------------------------------------------------------

    def apply(self, header: TxnHeader, txn: Txn) -> None:
        """Carry out one transaction; what watches must be told is then in ``changes``."""
        self._doors[type(txn)](header, txn)
        if header.zxid > self.zxid:
            self.zxid = header.zxid

    def apply_part(self, header: TxnHeader, txn: Txn) -> None:
        """Carry out one part of a multi, so that ``undo_parts`` can take it back."""
        if self._undo is None:
            self._undo = []
        self._doors[type(txn)](header, txn)

    def keep_parts(self, header: TxnHeader) -> None:
        """All parts succeeded."""
        self._undo = None
        self.zxid = header.zxid

    def undo_parts(self, header: TxnHeader) -> None:
        """A part failed: take back those before it, the last first. The transaction id is used up."""
        undo, self._undo = self._undo or (), None
        for step in reversed(undo):
            step[0](*step[1:])
        self.changes.clear()
        self.zxid = header.zxid

    def _apply_nothing(self, header: TxnHeader, txn: Txn) -> None:
        pass

    def _apply_multi(self, header: TxnHeader, txn: MultiTxn) -> None:
        if any(type(part) is ErrorTxn for part in txn.txns):
            return
        for part in txn.txns:
            self._doors[type(part)](header, part)

    def _apply_create(self, header: TxnHeader, txn: CreateTxn) -> None:
        owner = header.session if txn.ephemeral else 0
        self._create(header, txn.path, txn.data, txn.acl, owner, txn.parent_cversion)

    def _apply_create_container(self, header: TxnHeader, txn: CreateContainerTxn) -> None:
        self._create(header, txn.path, txn.data, txn.acl, CONTAINER_OWNER, txn.parent_cversion)

    def _apply_create_ttl(self, header: TxnHeader, txn: CreateTtlTxn) -> None:
        self._create(header, txn.path, txn.data, txn.acl, ttl_owner(txn.ttl_ms), txn.parent_cversion)

    def _create(
        self,
        header: TxnHeader,
        path: str,
        data: bytes | None,
        acl: tuple[Acl, ...],
        owner: int,
        parent_cversion: int,
    ) -> None:
        parent_path, _, name = path.rpartition("/")
        parent = self.nodes.get(parent_path)
        if parent is None:
            return  # replayed: the parent was deleted later
        zxid = header.zxid
        if self._undo is not None:
            self._undo.append((self._undo_create, path, parent, parent.cversion, parent.pzxid))
        if parent_cversion == -1:
            parent_cversion = parent.cversion + 1
        if parent_cversion > parent.cversion:
            parent.cversion = parent_cversion
            parent.pzxid = zxid
        parent.packed = None
        if not parent.children:
            parent.children = {}
        parent.children[name] = None
        if path in self.nodes:
            return  # replayed: the snapshot has it already
        acl = self._acls.setdefault(acl, acl)
        self.nodes[path] = Node(data, acl, owner, zxid, header.time_ms)
        if owner:
            self._own(owner, path)
        self.changes.append((CREATED, path, acl))
        self.changes.append((CHILDREN_CHANGED, parent_path or "/", parent.acl))

    def _undo_create(self, path: str, parent: Node, cversion: int, pzxid: int) -> None:
        node = self.nodes.pop(path)
        del parent.children[path.rpartition("/")[2]]
        parent.cversion, parent.pzxid, parent.packed = cversion, pzxid, None
        self._disown(node.owner, path)

    def _apply_delete(self, header: TxnHeader, txn: DeleteTxn) -> None:
        self._delete(header.zxid, txn.path)

    def _delete(self, zxid: int, path: str) -> None:
        parent_path, _, name = path.rpartition("/")
        parent = self.nodes.get(parent_path)
        if parent is None:
            return
        node = self.nodes.pop(path, None)
        if self._undo is not None:
            self._undo.append((self._undo_delete, path, node, parent, parent.pzxid))
        parent.packed = None
        parent.children.pop(name, None)
        if zxid > parent.pzxid:
            parent.pzxid = zxid
        if node is None:
            return  # replayed: it was deleted while the snapshot was written
        self._disown(node.owner, path)
        self.changes.append((DELETED, path, node.acl))
        self.changes.append((CHILDREN_CHANGED, parent_path or "/", parent.acl))

    def _undo_delete(self, path: str, node: Node, parent: Node, pzxid: int) -> None:
        self.nodes[path] = node
        if not parent.children:
            parent.children = {}
        parent.children[path.rpartition("/")[2]] = None
        parent.pzxid, parent.packed = pzxid, None
        self._own(node.owner, path)

    def _apply_set_data(self, header: TxnHeader, txn: SetDataTxn) -> None:
        node = self.nodes.get(txn.path)
        if node is None:
            return
        if self._undo is not None:
            self._undo.append((_undo_set_data, node, node.data, node.version, node.mzxid, node.mtime_ms))
        node.data = txn.data
        node.version = txn.version
        node.mzxid = header.zxid
        node.mtime_ms = header.time_ms
        node.packed = None
        self.changes.append((DATA_CHANGED, txn.path, node.acl))

    def _apply_set_acl(self, header: TxnHeader, txn: SetAclTxn) -> None:
        node = self.nodes.get(txn.path)
        if node is not None:
            node.acl, node.aversion, node.packed = self.shared(txn.acl), txn.version, None

    def _apply_create_session(self, header: TxnHeader, txn: CreateSessionTxn) -> None:
        self.sessions[header.session] = txn.timeout_ms

    def _apply_close_session(self, header: TxnHeader, txn: CloseSessionTxn) -> None:
        self.sessions.pop(header.session, None)
        for path in txn.paths:
            self._delete(header.zxid, path)
        for path in list(self.ephemerals.pop(header.session, ())):
            self._delete(header.zxid, path)

    # ---- owners ---------------------------------------------------------------------------------------

    def _own(self, owner: int, path: str) -> None:
        if owner == 0:
            return
        if owner == CONTAINER_OWNER:
            self.containers[path] = None
        elif ttl_of(owner):
            self.with_ttl[path] = None
        else:
            self.ephemerals.setdefault(owner, {})[path] = None

    def _disown(self, owner: int, path: str) -> None:
        if owner == 0:
            return
        if owner == CONTAINER_OWNER:
            self.containers.pop(path, None)
        elif ttl_of(owner):
            self.with_ttl.pop(path, None)
        elif owner in self.ephemerals:
            paths = self.ephemerals[owner]
            paths.pop(path, None)
            if not paths:
                del self.ephemerals[owner]

    # ---- snapshots ------------------------------------------------------------------------------------

    def dump(self) -> Iterator[StoredNode]:
        """Every node, parents first; it may be consumed over many turns while the tree changes.

        Nodes that come or go meanwhile may be missing or too many: the transactions after the one that the
        tree had at the start mend that.
        """
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            node = self.nodes.get(path)
            if node is None:
                continue
            prefix = "" if path == "/" else path
            waiting += [f"{prefix}/{name}" for name in node.children]
            yield StoredNode(
                prefix,
                node.data,
                node.acl,
                node.czxid,
                node.mzxid,
                node.ctime_ms,
                node.mtime_ms,
                node.version,
                node.cversion,
                node.aversion,
                node.owner,
                node.pzxid,
            )

    def load(self, sessions: Mapping[int, int], nodes: Iterable[StoredNode], zxid: int) -> None:
        """Replace everything by a snapshot that was begun at that transaction."""
        self._plant()
        self.ephemerals, self.containers, self.with_ttl = {}, {}, {}
        self.sessions = dict(sessions)
        for stored in nodes:
            path = stored.path or "/"
            node = self.nodes.get(path)
            if node is None:
                node = self.nodes[path] = Node(None, OPEN, 0, 0, 0)
                self._link(path)
            node.data, node.acl, node.owner = stored.data, self.shared(stored.acl), stored.ephemeral_owner
            node.czxid, node.mzxid, node.pzxid = stored.czxid, stored.mzxid, stored.pzxid
            node.ctime_ms, node.mtime_ms = stored.ctime_ms, stored.mtime_ms
            node.version, node.cversion, node.aversion = stored.version, stored.cversion, stored.aversion
            self._own(node.owner, path)
        self.zxid = zxid

    def _link(self, path: str) -> None:
        parent_path, _, name = path.rpartition("/")
        parent = self.nodes.get(parent_path)
        if parent is not None:
            if not parent.children:
                parent.children = {}
            parent.children[name] = None


def _undo_set_data(node: Node, data: bytes | None, version: int, mzxid: int, mtime_ms: int) -> None:
    node.data, node.version, node.mzxid, node.mtime_ms, node.packed = data, version, mzxid, mtime_ms, None
