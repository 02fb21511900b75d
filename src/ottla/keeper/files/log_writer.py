"""Appends entries to the log: those of a turn in one write and one sync."""

from ottla.keeper.files.names import file_path
from ottla.model.errors import InvariantBroken
from ottla.storage.disk.port import Disk, File
from ottla.zookeeper.server.log_format import LOG_HEADER, encode_entry
from ottla.zookeeper.server.txns import Txn, TxnHeader


def write_all(file: File, data: bytes) -> None:
    """Append all of it, though the kernel may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.append(rest) :]


class LogWriter:
    """The log that is being written; the first entry after ``roll`` begins a new file."""

    __slots__ = ("_disk", "_file", "_home", "_pending", "_synced_bytes", "_syncs")

    def __init__(self, disk: Disk, home: str, *, syncs: bool) -> None:
        self._disk = disk
        self._home = home
        self._syncs = syncs
        self._file: File | None = None
        self._synced_bytes = 0
        self._pending: list[bytes] = []

    def append(self, header: TxnHeader, txn: Txn) -> None:
        """Add an entry; ``flush`` writes it."""
        if self._file is None:
            self._begin(header.zxid)
        self._pending.append(encode_entry(header, txn, self._synced_bytes))

    def flush(self) -> None:
        """Return once all entries are on the disk, and the name of their file is."""
        if self._file is None or not self._pending:
            return
        data = b"".join(self._pending)
        self._pending.clear()
        write_all(self._file, data)
        if self._syncs:
            self._file.sync()
            if self._synced_bytes == 0:
                self._disk.sync_directory(self._home)
            self._synced_bytes += len(data)

    def roll(self) -> None:
        """Flush, and let the next entry begin a new file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, zxid: int) -> None:
        path = file_path(self._home, "log", zxid)
        self._file = self._disk.open(path, create=True)
        if self._file.size():
            raise InvariantBroken(f"{path} exists already, and its entries were not recovered")
        self._synced_bytes = 0
        self._pending.append(LOG_HEADER)
