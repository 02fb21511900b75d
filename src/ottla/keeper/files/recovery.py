"""Reads a data directory after any end, clean or not: the newest whole snapshot, then the log behind it.

What a crash left of the last write was never answered and is cut. Everything else that is not as it was
written is refused: a start without it would silently forget what clients were told.
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from ottla.keeper.files.errors import FilesRefused
from ottla.keeper.files.log_reader import LogReader
from ottla.keeper.files.names import Listing, NumberedFile
from ottla.keeper.files.retention import logs_behind
from ottla.storage.disk.port import Disk, File
from ottla.zookeeper.server.log_format import Entry
from ottla.zookeeper.server.snapshot_format import MalformedSnapshot, Snapshot, decode_snapshot
from ottla.zookeeper.server.txns import StoredNode, Txn, TxnHeader

log = logging.getLogger(__name__)

RESTORE = "restore the directory from a copy, or move it away to start empty"
_EPOCH_BITS = 32
_COUNTER = 2**_EPOCH_BITS - 1


class Recovered(NamedTuple):
    """What was on the disk. Take all ``nodes``, then all ``txns``; nodes may show effects of later txns."""

    zxid: int
    """The snapshot's: the nodes have all changes up to it."""
    sessions: dict[int, int]
    """Time-outs in milliseconds, as the snapshot has them."""
    nodes: Iterator[StoredNode]
    """Parents before their children."""
    txns: Iterator[tuple[TxnHeader, Txn]]
    """When the last one is taken, a torn end of the log has been cut."""


class Recovery:
    """One reading of a directory."""

    __slots__ = (
        "_disk",
        "_home",
        "_logs",
        "_snapshot",
        "_stored_zxid",
        "damaged",
        "last_zxid",
        "snapshot_zxid",
        "txn_count",
    )

    def __init__(self, disk: Disk, home: str, found: Listing) -> None:
        self._disk = disk
        self._home = home
        self.damaged: set[str] = set()
        """Snapshots that cannot be read."""
        self.snapshot_zxid, self._snapshot = self._newest(found)
        self._logs = logs_behind(found.logs, self.snapshot_zxid)
        self._stored_zxid = 0
        self.last_zxid = self.snapshot_zxid
        self.txn_count = 0

    def start(self) -> Recovered:
        return Recovered(self.snapshot_zxid, self._snapshot.sessions, self._nodes(), self._txns())

    def _newest(self, found: Listing) -> tuple[int, Snapshot]:
        if found.packed:
            raise FilesRefused(
                f"{found.packed[-1]} is compressed, which this keeper does not read: start Apache's server "
                "once without zookeeper.snapshot.compression.method, then remove the compressed snapshots"
            )
        for zxid, path in reversed(found.snapshots):
            try:
                return zxid, decode_snapshot(self._disk.read_file(path))
            except MalformedSnapshot as error:
                self.damaged.add(path)
                log.warning("%s is not a whole snapshot (%s): the one before it is used", path, error)
        cause = "none of its snapshots is whole" if found.snapshots else "it has logs and no snapshot"
        raise FilesRefused(f"cannot recover {self._home}: {cause}; {RESTORE}")

    def _nodes(self) -> Iterator[StoredNode]:
        try:
            for node in self._snapshot.nodes:
                self._stored_zxid = max(self._stored_zxid, node.czxid, node.mzxid, node.pzxid)
                yield node
        except MalformedSnapshot as error:
            raise FilesRefused(
                f"cannot read the snapshot of zxid {self.snapshot_zxid:#x}: {error}; {RESTORE}"
            ) from None

    def _txns(self) -> Iterator[tuple[TxnHeader, Txn]]:
        self._drop_logs_without_entries()
        for place, each in enumerate(self._logs):
            file = self._disk.open(each.path)
            try:
                reader = LogReader(file)
                for entry in reader.entries():
                    if entry.header.zxid > self.snapshot_zxid:
                        self._check_order(entry, each)
                        yield entry.header, entry.txn
                if place == len(self._logs) - 1:
                    self._end(each, file, reader)
                elif reader.damage is not None:
                    log.warning("%s ends with what a crash cut off at %d", each.path, reader.good_bytes)
            finally:
                file.close()
        self._disk.sync_directory(self._home)
        if self._stored_zxid > self.last_zxid:
            raise FilesRefused(
                f"the snapshot of zxid {self.snapshot_zxid:#x} has changes up to {self._stored_zxid:#x}, "
                f"but the logs end at {self.last_zxid:#x}: put the missing log back, or {RESTORE}"
            )

    def _drop_logs_without_entries(self) -> None:
        """Remove what a crash left of files that had just been begun."""
        while self._logs:
            last = self._logs[-1]
            file = self._disk.open(last.path)
            try:
                reader = LogReader(file)
                if next(reader.entries(), None) is not None:
                    return
                if reader.damage is not None and not reader.is_torn():
                    _refuse(last, reader)
            finally:
                file.close()
            log.warning("%s has no whole entry and is removed", last.path)
            self._disk.remove(last.path)
            self._logs.pop()

    def _check_order(self, entry: Entry, place: NumberedFile) -> None:
        """Zxids count up by one; a new epoch begins with 1."""
        zxid, before = entry.header.zxid, self.last_zxid
        is_new_epoch = zxid >> _EPOCH_BITS > before >> _EPOCH_BITS and zxid & _COUNTER <= 1
        if zxid != before + 1 and not is_new_epoch:
            raise FilesRefused(
                f"{place.path} goes on with zxid {zxid:#x} after {before:#x}, and what was between them is "
                f"missing: put the missing log back, or {RESTORE}"
            )
        self.last_zxid = zxid
        self.txn_count += 1

    def _end(self, last: NumberedFile, file: File, reader: LogReader) -> None:
        """Cut what a crash left, and make sure that all that was read stays."""
        if reader.damage is not None:
            if not reader.is_torn():
                _refuse(last, reader)
            log.warning(
                "%s: the last %d bytes, from %d on, are what a crash left of a write (%s); they are cut",
                *(last.path, reader.size - reader.good_bytes, reader.good_bytes, reader.damage),
            )
            file.truncate(reader.good_bytes)
        file.sync()


def _refuse(place: NumberedFile, reader: LogReader) -> NoReturn:
    raise FilesRefused(f"{place.path} is damaged at {reader.good_bytes}: {reader.damage}; {RESTORE}")
