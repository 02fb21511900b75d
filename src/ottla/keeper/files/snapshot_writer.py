"""Writes one snapshot in many small steps, while the tree goes on changing.

It is *fuzzy*, as Java's: each node is as it was when its turn came. The log behind the snapshot's zxid,
applied once more, makes it whole. So it may take its name only when the log is synced that far. Nodes made
meanwhile are left out, and so a replay never makes a node that is there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from ottla.keeper.files.log_writer import write_all
from ottla.keeper.files.names import file_path, unfinished_path
from ottla.storage.disk.port import Disk
from ottla.zookeeper.ops import Acl
from ottla.zookeeper.server.snapshot_format import SnapshotEncoder
from ottla.zookeeper.server.txns import StoredNode

SYNC_EVERY_BYTES: Final = 4 * 1024 * 1024
"""So that the last sync does not hold up the turn for long."""


class SnapshotWriter:
    """A snapshot under way."""

    __slots__ = ("_disk", "_encoder", "_file", "_home", "_nodes", "_syncs", "_unsynced_bytes", "acls", "zxid")

    def __init__(
        self,
        disk: Disk,
        home: str,
        zxid: int,
        sessions: Mapping[int, int],
        acls: Collection[tuple[Acl, ...]],
        nodes: Iterator[StoredNode],
        *,
        syncs: bool = True,
    ) -> None:
        self._disk = disk
        self._home = home
        self.zxid = zxid
        self._nodes = nodes
        self._syncs = syncs
        self._encoder = SnapshotEncoder(sessions, acls)
        self._unsynced_bytes = 0
        self.acls: set[tuple[Acl, ...]] = set()
        """The lists of the nodes written so far."""
        path = unfinished_path(home, zxid)
        if disk.exists(path):
            disk.remove(path)
        self._file = disk.open(path, create=True)
        write_all(self._file, self._encoder.start())

    def write_some(self, count: int, sync_log: Callable[[], None]) -> bool:
        """Write so many nodes; True when the snapshot is complete and has its name."""
        nodes = list(islice(self._nodes, count))
        old = [node for node in nodes if node.czxid <= self.zxid]
        self.acls.update([node.acl for node in old])
        piece = self._encoder.nodes(old)
        write_all(self._file, piece)
        self._unsynced_bytes += len(piece)
        if len(nodes) == count:
            if self._syncs and self._unsynced_bytes >= SYNC_EVERY_BYTES:
                self._file.sync()
                self._unsynced_bytes = 0
            return False
        write_all(self._file, self._encoder.end())
        sync_log()
        if self._syncs:
            self._file.sync()
        self._file.close()
        self._disk.rename(
            unfinished_path(self._home, self.zxid), file_path(self._home, "snapshot", self.zxid)
        )
        if self._syncs:
            self._disk.sync_directory(self._home)
        return True

    def abandon(self) -> None:
        """Leave it unfinished; the next start removes it."""
        self._file.close()
