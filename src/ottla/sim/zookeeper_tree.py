"""ZooKeeper's tree in memory: nodes, versions, sessions, ephemerals, watches, multi.

It answers as the real server does (a test runs the same random operations on both). Nothing here
takes time or gets lost: delay, disconnection and expiry are the simulated service's business.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, assert_never

from ottla.zookeeper.ops import (
    ANY_VERSION,
    OPEN,
    Acl,
    AclFound,
    AclSet,
    Check,
    Checked,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Exists,
    Failed,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    Op,
    ReadResult,
    Result,
    SetAcl,
    SetData,
    Stat,
    Sync,
    Synced,
    WatchEvent,
    WatchKind,
    WriteOp,
    WriteResult,
    ZkCode,
)

NO_OWNER = 0


class Fired(NamedTuple):
    """A watch that fired, and whose it was."""

    session: int
    event: WatchEvent


@dataclass(slots=True)
class Node:
    """One znode; ``creates`` counts the children ever made, which numbers the sequential ones."""

    data: bytes | None
    acl: tuple[Acl, ...]
    owner: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    aversion: int = 0
    creates: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime_ms=self.ctime_ms,
            mtime_ms=self.mtime_ms,
            version=self.version,
            cversion=2 * self.creates - len(self.children),
            aversion=self.aversion,
            ephemeral_owner=self.owner,
            data_length=len(self.data or b""),
            num_children=len(self.children),
            pzxid=self.pzxid,
        )


class _Refused(Exception):
    """An operation cannot be done; nothing was changed."""

    def __init__(self, code: ZkCode) -> None:
        super().__init__(code)
        self.code = code


Watches: TypeAlias = dict[str, dict[int, None]]


class ZooKeeperTree:
    """The state all servers agree on. Sets are dictionaries, so that order never depends on hashing."""

    def __init__(self) -> None:
        self.zxid = 0
        self.nodes: dict[str, Node] = {"/": Node(None, OPEN, NO_OWNER, 0, 0, 0, 0, 0)}
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._data_watches: Watches = {}
        self._child_watches: Watches = {}
        self._fired: list[Fired] = []

    # -- sessions ----------------------------------------------------------------------------

    def open_session(self, session: int) -> None:
        """A session begins; its number is the caller's choice, never zero and never used twice."""
        assert session != NO_OWNER, "zero stands for no owner"
        assert session not in self._ephemerals, "a session is opened once"
        self.zxid += 1
        self._ephemerals[session] = {}

    def has_session(self, session: int) -> bool:
        return session in self._ephemerals

    def end_session(self, session: int) -> list[Fired]:
        """A session is closed or expires: its ephemeral nodes go, and its watches."""
        self.zxid += 1
        for path in list(self._ephemerals.pop(session, {})):
            self._remove(path)
        for watches in (self._data_watches, self._child_watches):
            for watchers in watches.values():
                watchers.pop(session, None)
        return [fired for fired in self._take_fired() if fired.session != session]

    # -- operations --------------------------------------------------------------------------

    def apply(self, op: Op, session: int, now_ms: int) -> tuple[Result, list[Fired]]:
        """Carry out one operation of a live session; the watches it fires come with the result."""
        try:
            result = self._apply(op, session, now_ms)
        except _Refused as refused:
            result = Failed(refused.code)
        return result, self._take_fired()

    def _apply(self, op: Op, session: int, now_ms: int) -> Result:
        match op:
            case Create() | Delete() | SetData() | Check():
                self._may_write(op)
                if not isinstance(op, Check):
                    self.zxid += 1
                return self._write(op, session, now_ms)
            case Multi():
                return self._multi(op, session, now_ms)
            case GetData() | GetChildren():
                return self._read(op, session)
            case Exists():
                if op.watch:
                    self._data_watches.setdefault(op.path, {})[session] = None
                return Found(self._node(op.path).stat())
            case MultiRead():
                return MultiDone(tuple(self._read_or_fail(read) for read in op.ops))
            case GetAcl():
                node = self._node(op.path)
                return AclFound(node.acl, node.stat())
            case SetAcl():
                node = self._node(op.path)
                if op.version not in (ANY_VERSION, node.aversion):
                    raise _Refused(ZkCode.BAD_VERSION)
                self.zxid += 1
                node.acl, node.aversion = op.acl, node.aversion + 1
                return AclSet(node.stat())
            case Sync():
                return Synced(op.path)
            case _:
                assert_never(op)

    # -- writing -----------------------------------------------------------------------------

    def _multi(self, op: Multi, session: int, now_ms: int) -> Result:
        """All or nothing: tried on a copy of what it touches, kept only if every part succeeds."""
        saved_nodes = {path: _copy(self.nodes[path]) for path in self._touched(op) if path in self.nodes}
        saved_ephemerals = {owner: dict(paths) for owner, paths in self._ephemerals.items()}
        before = set(self.nodes)
        self.zxid += 1
        done: list[WriteResult] = []
        fired, self._fired = self._fired, []
        saved_watches = (_copy_watches(self._data_watches), _copy_watches(self._child_watches))
        for index, part in enumerate(op.ops):
            try:
                self._may_write(part)
                done.append(self._write(part, session, now_ms))
            except _Refused as refused:
                for path in [path for path in self.nodes if path not in before]:
                    del self.nodes[path]
                self.nodes.update(saved_nodes)
                self._ephemerals = saved_ephemerals
                self._data_watches, self._child_watches = saved_watches
                self._fired = fired
                return MultiFailed(index, refused.code, tuple(_codes(len(op.ops), index, refused.code)))
        self._fired = fired + self._fired
        return MultiDone(tuple(done))

    def _touched(self, op: Multi) -> Iterator[str]:
        for part in op.ops:
            yield part.path
            yield _parent(part.path)

    def _may_write(self, op: WriteOp) -> None:
        match op:
            case Create():
                parent = self.nodes.get(_parent(op.path))
                if parent is None:
                    raise _Refused(ZkCode.NO_NODE)
                if not op.sequential and op.path in self.nodes:
                    raise _Refused(ZkCode.NODE_EXISTS)
                if parent.owner != NO_OWNER:
                    raise _Refused(ZkCode.NO_CHILDREN_FOR_EPHEMERALS)
            case Delete() | SetData() | Check():
                node = self._node(op.path)
                if op.version not in (ANY_VERSION, node.version):
                    raise _Refused(ZkCode.BAD_VERSION)
                if isinstance(op, Delete) and node.children:
                    raise _Refused(ZkCode.NOT_EMPTY)
            case _:
                assert_never(op)

    def _write(self, op: WriteOp, session: int, now_ms: int) -> WriteResult:
        match op:
            case Create():
                return self._create(op, session, now_ms)
            case Delete():
                self._remove(op.path)
                return Deleted()
            case SetData():
                node = self._node(op.path)
                node.data, node.version, node.mzxid, node.mtime_ms = (
                    op.data,
                    node.version + 1,
                    self.zxid,
                    now_ms,
                )
                self._fire(self._data_watches, op.path, WatchKind.DATA_CHANGED)
                return DataSet(node.stat())
            case Check():
                return Checked()
            case _:
                assert_never(op)

    def _create(self, op: Create, session: int, now_ms: int) -> Created:
        parent = self.nodes[_parent(op.path)]
        path = f"{op.path}{parent.creates:010d}" if op.sequential else op.path
        if path in self.nodes:
            raise _Refused(ZkCode.NODE_EXISTS)
        owner = session if op.ephemeral else NO_OWNER
        node = Node(op.data, op.acl, owner, self.zxid, self.zxid, self.zxid, now_ms, now_ms)
        self.nodes[path] = node
        parent.children[_name(path)] = None
        parent.creates += 1
        parent.pzxid = self.zxid
        if op.ephemeral:
            self._ephemerals[session][path] = None
        self._fire(self._data_watches, path, WatchKind.CREATED)
        self._fire(self._child_watches, _parent(path), WatchKind.CHILDREN_CHANGED)
        return Created(path, node.stat())

    def _remove(self, path: str) -> None:
        node = self.nodes.pop(path)
        parent = self.nodes[_parent(path)]
        parent.children.pop(_name(path), None)
        parent.pzxid = self.zxid
        if node.owner in self._ephemerals:
            self._ephemerals[node.owner].pop(path, None)
        gone = self._watchers(self._data_watches, path) | self._watchers(self._child_watches, path)
        self._fired += [Fired(session, WatchEvent(WatchKind.DELETED, path)) for session in gone]
        self._fire(self._child_watches, _parent(path), WatchKind.CHILDREN_CHANGED)

    # -- reading -----------------------------------------------------------------------------

    def _node(self, path: str) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise _Refused(ZkCode.NO_NODE)
        return node

    def _read(self, op: GetData | GetChildren, session: int) -> Data | Children:
        node = self._node(op.path)
        if isinstance(op, GetData):
            if op.watch:
                self._data_watches.setdefault(op.path, {})[session] = None
            return Data(node.data, node.stat())
        if op.watch:
            self._child_watches.setdefault(op.path, {})[session] = None
        return Children(tuple(node.children), node.stat())

    def _read_or_fail(self, op: GetData | GetChildren) -> ReadResult:
        node = self.nodes.get(op.path)
        if node is None:
            return Failed(ZkCode.NO_NODE)
        if isinstance(op, GetData):
            return Data(node.data, node.stat())
        return Children(tuple(node.children), None)

    # -- watches -----------------------------------------------------------------------------

    def watch_again(
        self, session: int, last_zxid: int, data: list[str], exists: list[str], children: list[str]
    ) -> list[Fired]:
        """SetWatches after a reconnect: what changed since ``last_zxid`` fires at once, the rest is armed."""
        for path in data:
            node = self.nodes.get(path)
            if node is None:
                self._fired.append(Fired(session, WatchEvent(WatchKind.DELETED, path)))
            elif node.mzxid > last_zxid:
                self._fired.append(Fired(session, WatchEvent(WatchKind.DATA_CHANGED, path)))
            else:
                self._data_watches.setdefault(path, {})[session] = None
        for path in exists:
            if path in self.nodes:
                self._fired.append(Fired(session, WatchEvent(WatchKind.CREATED, path)))
            else:
                self._data_watches.setdefault(path, {})[session] = None
        for path in children:
            node = self.nodes.get(path)
            if node is None:
                self._fired.append(Fired(session, WatchEvent(WatchKind.DELETED, path)))
            elif node.pzxid > last_zxid:
                self._fired.append(Fired(session, WatchEvent(WatchKind.CHILDREN_CHANGED, path)))
            else:
                self._child_watches.setdefault(path, {})[session] = None
        return self._take_fired()

    def _fire(self, watches: Watches, path: str, kind: WatchKind) -> None:
        for session in self._watchers(watches, path):
            self._fired.append(Fired(session, WatchEvent(kind, path)))

    @staticmethod
    def _watchers(watches: Watches, path: str) -> dict[int, None]:
        return watches.pop(path, {})

    def _take_fired(self) -> list[Fired]:
        fired, self._fired = self._fired, []
        return fired


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def _name(path: str) -> str:
    return path.rsplit("/", 1)[1]


def _copy(node: Node) -> Node:
    return Node(
        node.data,
        node.acl,
        node.owner,
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.ctime_ms,
        node.mtime_ms,
        node.version,
        node.aversion,
        node.creates,
        dict(node.children),
    )


def _copy_watches(watches: Watches) -> Watches:
    return {path: dict(watchers) for path, watchers in watches.items()}


def _codes(count: int, failed: int, code: ZkCode) -> Iterator[Failed]:
    """What the real server says of each part: fine before the failure, inconsistent after it."""
    for index in range(count):
        if index == failed:
            yield Failed(code)
        else:
            yield Failed(ZkCode.OK if index < failed else ZkCode.RUNTIME_INCONSISTENCY)
