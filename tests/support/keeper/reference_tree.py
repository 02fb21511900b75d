"""A tree of nodes as small as it can be, which applies txns as Java's server does when it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.zookeeper.ops import OPEN, READ_BY_ALL, Acl
from ottla.zookeeper.server.txns import (
    CONTAINER_OWNER,
    TTL_OWNER,
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

FRESH = (
    StoredNode("/", b"", OPEN, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    StoredNode("/zookeeper", b"", OPEN, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    StoredNode("/zookeeper/config", b"", READ_BY_ALL, 0, 0, 0, 0, 0, 0, -1, 0, 0),
    StoredNode("/zookeeper/quota", b"", OPEN, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)

State = tuple[dict[int, int], dict[str, StoredNode]]
Create = CreateTxn | CreateContainerTxn | CreateTtlTxn


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


@dataclass(slots=True)
class Node:
    """A node that changes."""

    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    pzxid: int
    children: set[str] = field(default_factory=set)


class ReferenceTree:
    """Nodes by path, and the time-outs of sessions."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.sessions: dict[int, int] = {}

    def add(self, node: StoredNode) -> None:
        """Take a node of a snapshot."""
        values = [getattr(node, name) for name in StoredNode.__struct_fields__[1:]]
        path = node.path or "/"
        self.nodes[path] = Node(*values)
        if path != "/":
            self.nodes[parent_of(path)].children.add(path)

    def walk(self) -> Iterator[StoredNode]:
        """All nodes, parents first; the tree may change between two of them."""
        paths = ["/"]
        while paths:
            path = paths.pop()
            if path in self.nodes:
                paths += sorted(self.nodes[path].children, reverse=True)
                yield self.stored(path)

    def stored(self, path: str) -> StoredNode:
        node = self.nodes[path]
        return StoredNode(path, *[getattr(node, name) for name in StoredNode.__struct_fields__[1:]])

    def state(self) -> State:
        return dict(self.sessions), {node.path: node for node in self.walk()}

    def owned(self, session: int) -> tuple[str, ...]:
        return tuple(sorted(path for path, node in self.nodes.items() if node.ephemeral_owner == session))

    def apply(self, header: TxnHeader, txn: Txn) -> None:
        match txn:
            case CreateTxn() | CreateContainerTxn() | CreateTtlTxn():
                self._create(header, txn)
            case DeleteTxn(path):
                self._delete(header.zxid, path)
            case SetDataTxn(path, data, version) if (node := self.nodes.get(path)) is not None:
                node.data, node.version = data, version
                node.mzxid, node.mtime_ms = header.zxid, header.time_ms
            case SetAclTxn(path, acl, version) if (node := self.nodes.get(path)) is not None:
                node.acl, node.aversion = acl, version
            case MultiTxn(txns) if not any(isinstance(part, ErrorTxn) for part in txns):
                for part in txns:
                    self.apply(header, part)
            case CreateSessionTxn(timeout_ms):
                self.sessions[header.session] = timeout_ms
            case CloseSessionTxn(paths):
                self.sessions.pop(header.session, None)
                for path in dict.fromkeys(paths + self.owned(header.session)):
                    self._delete(header.zxid, path)

    def _create(self, header: TxnHeader, txn: Create) -> None:
        parent = self.nodes.get(parent_of(txn.path))
        if parent is None:
            return
        if txn.parent_cversion > parent.cversion:
            parent.cversion, parent.pzxid = txn.parent_cversion, header.zxid
        if txn.path in parent.children:
            return
        zxid, time_ms = header.zxid, header.time_ms
        owner = _owner(header, txn)
        self.nodes[txn.path] = Node(txn.data, txn.acl, zxid, zxid, time_ms, time_ms, 0, 0, 0, owner, zxid)
        parent.children.add(txn.path)

    def _delete(self, zxid: int, path: str) -> None:
        parent = self.nodes.get(parent_of(path))
        if parent is None:
            return
        parent.children.discard(path)
        parent.pzxid = max(parent.pzxid, zxid)
        self.nodes.pop(path, None)


def _owner(header: TxnHeader, txn: Create) -> int:
    match txn:
        case CreateContainerTxn():
            return CONTAINER_OWNER
        case CreateTtlTxn(ttl_ms=ttl_ms):
            return TTL_OWNER | ttl_ms
        case _:
            return header.session if txn.ephemeral else 0
