"""ZooKeeper for commands and tests: the client in a thread of its own, behind plain calls."""

import asyncio
import queue
import ssl
import threading
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from ottla.server.zookeeper.session import Notification, ZooKeeperClient, ZooKeeperUnavailable
from ottla.znodes.paths import parents
from ottla.zookeeper.ops import (
    ANY_VERSION,
    OPEN,
    Acl,
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
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    Op,
    ReadOp,
    ReadResult,
    Result,
    SetData,
    Stat,
    WriteOp,
    WriteResult,
    ZkCode,
)

T = TypeVar("T")
CALL_LIMIT_S = 30.0

_MEANING = {
    ZkCode.NO_NODE: "there is no such node",
    ZkCode.NODE_EXISTS: "the node is there already",
    ZkCode.BAD_VERSION: "somebody changed it meanwhile; read it again",
    ZkCode.NOT_EMPTY: "it has children; delete those first",
    ZkCode.NO_AUTH: "this login may not do that; check the user and the password",
    ZkCode.INVALID_ACL: "its ACL needs a login; give a user and a password",
    ZkCode.NO_CHILDREN_FOR_EPHEMERALS: "an ephemeral node cannot have children",
    ZkCode.BAD_ARGUMENTS: "that is not a path of a node",
    ZkCode.MARSHALLING_ERROR: "it is larger than one message may be",
}


class ZooKeeperRefused(Exception):
    """ZooKeeper said no; the text says what, and what to do about it."""

    def __init__(self, action: str, path: str, code: ZkCode) -> None:
        meaning = _MEANING.get(code, "that failed")
        super().__init__(f"ZooKeeper refused to {action} {path}: {meaning} ({code.name}).")
        self.path = path
        self.code = code


class BlockingZooKeeper:
    """A session as a context manager; every call waits for its answer.

    Refusals raise ``ZooKeeperRefused``, a lost ensemble ``ZooKeeperUnavailable``; ``run`` gives outcomes
    as values instead. Watch and session events are put on ``events``.
    """

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int = 18_000,
        limit_ms: int | None = None,
        refused_ms: int | None = None,
        auth: Sequence[tuple[str, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        needs_chroot: bool = True,
    ) -> None:
        self.events: queue.SimpleQueue[Notification] = queue.SimpleQueue()
        self._connect_string = connect_string
        self._limit_ms = limit_ms
        self._refused_ms = refused_ms
        self._needs_chroot = needs_chroot
        self._options = {
            "session_timeout_ms": session_timeout_ms,
            "auth": auth,
            "tls": tls,
            "listener": self.events.put,
        }
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: ZooKeeperClient | None = None

    def open(self) -> Self:
        """Connect, or raise ``ZooKeeperUnavailable``."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="zookeeper", daemon=True)
        self._thread.start()
        try:
            self._client = self._await(self._connect(), limit_s=None)
        except BaseException:
            self._stop_loop()
            raise
        return self

    async def _connect(self) -> ZooKeeperClient:
        client = await ZooKeeperClient.connect(
            self._connect_string, limit_ms=self._limit_ms, refused_ms=self._refused_ms, **self._options
        )
        if self._needs_chroot and not await client.chroot_exists():
            await client.close()
            raise ZooKeeperUnavailable(
                f"ZooKeeper at {client.ensemble} has no node {client.ensemble.chroot}: "
                "check the path after the last port in zookeeper.connect, or start a broker, which makes it."
            )
        return client

    def close(self) -> None:
        """End the session and the thread."""
        if self._client is not None:
            self._await(self._client.close())
            self._client = None
        self._stop_loop()

    def _stop_loop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the session ------------------------------------------------------------------------------

    @property
    def session_id(self) -> int:
        """The owner of our ephemeral nodes."""
        return self._connected().session_id

    @property
    def session_timeout_ms(self) -> int:
        """What the servers granted."""
        return self._connected().session_timeout_ms

    def create_chroot(self) -> None:
        """Make the node of the connect string's path."""
        self._await(self._connected().create_chroot())

    # ---- outcomes as values -----------------------------------------------------------------------

    def run(self, op: Op, limit_s: float = CALL_LIMIT_S) -> Result:
        """One operation and its outcome."""
        client = self._connected()

        async def ask() -> Result:
            return cast(Result, await client.submit(op))

        return self._await(ask(), limit_s)

    def read_many(self, ops: Iterable[ReadOp]) -> list[ReadResult | Lost]:
        """Many reads in few requests."""
        return self._await(self._connected().read_many(list(ops)))

    # ---- plain calls ------------------------------------------------------------------------------

    def get(self, path: str) -> Data:
        """A node's data and stat."""
        return _expect(Data, self.run(GetData(path)), "read", path)

    def get_or_none(self, path: str) -> Data | None:
        """The same, or ``None`` where there is no such node."""
        result = self.run(GetData(path))
        return None if result == Failed(ZkCode.NO_NODE) else _expect(Data, result, "read", path)

    def exists(self, path: str) -> Stat | None:
        """A node's stat, or ``None`` where there is no such node."""
        result = self.run(Exists(path))
        return None if result == Failed(ZkCode.NO_NODE) else _expect(Found, result, "read", path).stat

    def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        return sorted(_expect(Children, self.run(GetChildren(path)), "list", path).names)

    def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        acl: tuple[Acl, ...] = OPEN,
        with_parents: bool = False,
    ) -> str:
        """Make a node; its path, with the number if it is sequential."""
        if with_parents:
            self.make_path(parents(path))
        op = Create(path, data, ephemeral, sequential, acl)
        return _expect(Created, self.run(op), "make", path).path

    def make_path(self, paths: Iterable[str]) -> None:
        """Make these nodes without data, where they are missing, in this order."""
        for path in paths:
            result = self.run(Create(path))
            if result != Failed(ZkCode.NODE_EXISTS):
                _expect(Created, result, "make", path)

    def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data."""
        return _expect(DataSet, self.run(SetData(path, data, version)), "write", path).stat

    def delete(self, path: str, version: int = ANY_VERSION, *, recursive: bool = False) -> None:
        """Remove a node, if wanted with all below it."""
        if recursive:
            for name in self.children(path):
                self.delete(f"{path.rstrip('/')}/{name}", recursive=True)
        _expect(Deleted, self.run(Delete(path, version)), "delete", path)

    def multi(self, ops: Iterable[WriteOp]) -> tuple[WriteResult, ...]:
        """All of these or none."""
        multi = Multi(tuple(ops))
        result = self.run(multi)
        if isinstance(result, MultiFailed):
            raise ZooKeeperRefused("write", multi.ops[result.index].path, result.code)
        return cast(tuple[WriteResult, ...], _expect(MultiDone, result, "write", "several nodes").results)

    # ---- the thread -------------------------------------------------------------------------------

    def _connected(self) -> ZooKeeperClient:
        if self._client is None:
            raise ZooKeeperUnavailable("The ZooKeeper session is closed; open one first.")
        return self._client

    def _await(self, coroutine: Coroutine[Any, Any, T], limit_s: float | None = CALL_LIMIT_S) -> T:
        assert self._loop is not None, "the loop runs while the session is open"
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(limit_s)
        except FutureTimeout:
            future.cancel()
            raise ZooKeeperUnavailable(
                f"ZooKeeper at {self._connect_string} did not answer in {limit_s:g} s; check that it runs."
            ) from None


def _expect(kind: type[T], result: Result, action: str, path: str) -> T:
    if isinstance(result, kind):
        return result
    if isinstance(result, Failed):
        raise ZooKeeperRefused(action, path, result.code)
    if isinstance(result, Lost) and result.maybe_applied:
        raise ZooKeeperUnavailable(
            f"The connection to ZooKeeper broke while it was asked to {action} {path}: "
            "look whether it was done before you repeat it."
        )
    raise ZooKeeperUnavailable(f"The ZooKeeper session ended before it could {action} {path}; try again.")
