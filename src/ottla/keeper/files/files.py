"""A keeper's data directory, as its node uses it: recover once, then append, sync and take snapshots.

A standalone Apache server needs no epoch files and writes none; those of an ensemble's member are left alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from os.path import dirname
from typing import Concatenate, Final, ParamSpec, TypeVar

from ottla.keeper.files.errors import FilesFailed, FilesRefused, failure
from ottla.keeper.files.log_writer import LogWriter
from ottla.keeper.files.names import LOCK, VERSION_DIRECTORY, list_files
from ottla.keeper.files.recovery import Recovered, Recovery
from ottla.keeper.files.retention import remove_old_files
from ottla.keeper.files.snapshot_writer import SnapshotWriter
from ottla.storage.disk.port import Disk, Lock
from ottla.zookeeper.ops import Acl
from ottla.zookeeper.server.txns import (
    CreateContainerTxn,
    CreateTtlTxn,
    CreateTxn,
    MultiTxn,
    SetAclTxn,
    StoredNode,
    Txn,
    TxnHeader,
)

SNAPSHOT_EVERY: Final = 100_000
NODES_A_TURN: Final = 500

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _guarded(
    method: "Callable[Concatenate[KeeperFiles, _Arguments], _Result]",
) -> "Callable[Concatenate[KeeperFiles, _Arguments], _Result]":
    """After the first refusal of the disk nothing is written again: a second sync could claim too much."""

    @wraps(method)
    def guard(self: "KeeperFiles", /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        if self.failure is not None:
            raise self.failure
        try:
            return method(self, *args, **kwargs)
        except OSError as error:
            self.failure = failure(self._disk, self.directory, error)
            raise self.failure from error

    return guard


class KeeperFiles:
    """The files below one directory, locked against other processes until ``close``."""

    def __init__(
        self, disk: Disk, directory: str, *, syncs: bool = True, snapshot_every: int = SNAPSHOT_EVERY
    ) -> None:
        """``syncs=False`` leaves writing to the operating system: fast, for tests."""
        self.directory = directory
        self.failure: FilesFailed | None = None
        self._disk = disk
        self._home = f"{directory}/{VERSION_DIRECTORY}"
        self._syncs = syncs
        self._snapshot_every = snapshot_every
        self._log = LogWriter(disk, self._home, syncs=syncs)
        self._lock: Lock | None = None
        self._recovery: Recovery | None = None
        self._snapshot: SnapshotWriter | None = None
        self._acls: set[tuple[Acl, ...]] = set()
        """Every list that a node may have: those recovered, those of the last snapshot, and all since."""
        self._acls_since_snapshot: set[tuple[Acl, ...]] = set()
        self._txns_since_snapshot = 0

    def recover(self, fresh: Iterable[StoredNode]) -> Recovered:
        """Lock the directory and read it; an empty one begins with the ``fresh`` nodes at zxid 0."""
        with self._refusing("keep data"):
            self._recovery = self._read(fresh)
        recovered = self._recovery.start()
        return recovered._replace(
            nodes=self._seen_nodes(recovered.nodes), txns=self._seen_txns(recovered.txns)
        )

    @property
    def last_zxid(self) -> int:
        """The last zxid that was recovered; known when all txns were taken."""
        assert self._recovery is not None, "the directory was recovered"
        return self._recovery.last_zxid

    @property
    def is_snapshot_due(self) -> bool:
        """Whether so much was written that the next start should not have to read it all."""
        return self._snapshot is None and self._txns_since_snapshot >= self._snapshot_every

    @_guarded
    def append(self, header: TxnHeader, txn: Txn) -> None:
        """Add an entry to the log; it may be answered after ``sync``."""
        self._log.append(header, txn)
        self._see(txn)

    @_guarded
    def sync(self) -> None:
        """Return once everything appended is on the disk."""
        self._log.flush()

    @_guarded
    def begin_snapshot(self, zxid: int, sessions: Mapping[int, int], nodes: Iterator[StoredNode]) -> None:
        """Begin a snapshot of a tree that has all changes up to ``zxid``; ``write_some`` takes its nodes.

        The nodes may change meanwhile, but each comes after its parent.
        """
        self.abandon_snapshot()
        self._log.roll()
        self._acls_since_snapshot = set()
        self._txns_since_snapshot = 0
        self._snapshot = SnapshotWriter(
            self._disk, self._home, zxid, sessions, self._acls, nodes, syncs=self._syncs
        )

    @_guarded
    def write_some(self, count: int = NODES_A_TURN) -> bool:
        """Write some nodes of the snapshot; True when none is under way any more."""
        if self._snapshot is None:
            return True
        if not self._snapshot.write_some(count, self._log.flush):
            return False
        self._acls = self._snapshot.acls | self._acls_since_snapshot
        self._snapshot = None
        remove_old_files(self._disk, self._home, self._recovery.damaged if self._recovery is not None else ())
        return True

    def abandon_snapshot(self) -> None:
        """Give up the snapshot under way."""
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None

    def close(self) -> None:
        """Sync, and let another process have the directory."""
        self.abandon_snapshot()
        try:
            if self.failure is None:
                self._close_log()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    @_guarded
    def _close_log(self) -> None:
        self._log.roll()

    def _read(self, fresh: Iterable[StoredNode]) -> Recovery:
        self._make_directory()
        self._lock = self._disk.lock(f"{self.directory}/{LOCK}")
        if self._lock is None:
            raise FilesRefused(
                f"another process keeps its data in {self.directory}: stop it, or choose another directory"
            )
        found = list_files(self._disk, self._home)
        for path in found.unfinished:
            self._disk.remove(path)
        if not found.snapshots and not found.logs and not found.packed:
            self._write_first_snapshot(list(fresh))
            found = list_files(self._disk, self._home)
        return Recovery(self._disk, self._home, found)

    def _make_directory(self) -> None:
        """A process that was killed may have made it without syncing its name."""
        self._disk.make_directory(self._home)
        self._disk.sync_directory(self.directory)
        self._disk.sync_directory(dirname(self.directory) or ".")

    def _write_first_snapshot(self, fresh: list[StoredNode]) -> None:
        """Apache's server refuses logs without a snapshot before them."""
        acls = {node.acl for node in fresh}
        writer = SnapshotWriter(self._disk, self._home, 0, {}, acls, iter(fresh), syncs=self._syncs)
        while not writer.write_some(NODES_A_TURN, self._log.flush):
            pass

    def _seen_nodes(self, nodes: Iterator[StoredNode]) -> Iterator[StoredNode]:
        with self._refusing("read the snapshot"):
            for node in nodes:
                self._acls.add(node.acl)
                yield node

    def _seen_txns(self, txns: Iterator[tuple[TxnHeader, Txn]]) -> Iterator[tuple[TxnHeader, Txn]]:
        with self._refusing("read the logs"):
            for header, txn in txns:
                self._see(txn)
                yield header, txn

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        """Give the directory back when it turns out to be of no use."""
        try:
            yield
        except FilesRefused:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise FilesRefused(
                f"cannot {what} in {self.directory} ({error.strerror or error}): "
                "mend that, or choose another directory"
            ) from error

    def _see(self, txn: Txn) -> None:
        """Count a txn and remember its access control lists."""
        self._txns_since_snapshot += 1
        for part in txn.txns if isinstance(txn, MultiTxn) else (txn,):
            if isinstance(part, CreateTxn | CreateContainerTxn | CreateTtlTxn | SetAclTxn):
                self._acls.add(part.acl)
                self._acls_since_snapshot.add(part.acl)
