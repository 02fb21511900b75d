"""The ``Disk`` port, through which all files are accessed, and ``OsDisk``, the real file system.

Everything the log does to the disk is one of these calls, so that a simulated disk can crash, tear and
refuse at each of them. Failures are ``OSError``; the log turns them into ``LogDirectoryFailed``.
"""

import contextlib
import fcntl
import mmap
import os
import shutil
from typing import NamedTuple, Protocol, TypeAlias

from ottla.storage.disk.file_names import TEMPORARY_SUFFIX

Buffer: TypeAlias = bytes | bytearray | memoryview

SLICED_BYTES_MIN = 16_384
"""Smaller reads are copied: mapping costs more than it saves."""


class DirectoryEntry(NamedTuple):
    """What a directory listing tells of one name."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int


class File(Protocol):
    """An open file: written at its end, read anywhere."""

    def append(self, data: Buffer) -> int:
        """Write at the end; returns how many bytes the kernel took, which may be too few."""
        ...

    def pread(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes from a position."""
        ...

    def slice(self, position: int, size: int) -> Buffer:
        """Bytes to be sent as they are, without a copy if they are many. Never parse them."""
        ...

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Return once the file's bytes are on the disk."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """A lock on a log directory, held until released."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system, reduced to what a log needs."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: Buffer) -> None:
        """Make or overwrite a small file; nothing is synced."""
        ...

    def sync_file(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Return once names made, changed and removed in a directory are on the disk."""
        ...

    def sync_volume(self, path: str) -> None:
        """Return once everything that was written to the path's volume is on the disk."""
        ...

    def list_directory(self, path: str) -> list[DirectoryEntry]: ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; one that exists is fine."""
        ...

    def exists(self, path: str) -> bool: ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def lock(self, path: str) -> Lock | None:
        """An exclusive lock on a file; ``None`` if another process holds it."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume."""
        ...


def replace_file(disk: Disk, path: str, data: Buffer) -> None:
    """Give a file new content so that a crash leaves the old or the new one, never a mixture."""
    temporary = path + TEMPORARY_SUFFIX
    disk.write_file(temporary, data)
    disk.sync_file(temporary)
    disk.rename(temporary, path)
    disk.sync_directory(os.path.dirname(path))


class MappedBudget:
    """Bounds the pages that mapped slices keep resident, over all files."""

    __slots__ = ("_maps", "_touched_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = 16 * 1024 * 1024) -> None:
        self.limit_bytes = limit_bytes
        self._touched_bytes = 0
        self._maps: dict[int, mmap.mmap] = {}

    def touch(self, mapped: mmap.mmap, size: int) -> None:
        """Count a slice; past the limit the pages of all touched maps are given back."""
        self._maps[id(mapped)] = mapped
        self._touched_bytes += size
        if self._touched_bytes > self.limit_bytes:
            for each in self._maps.values():
                each.madvise(mmap.MADV_DONTNEED)
            self._maps = {}
            self._touched_bytes = 0


class OsFile:
    """A file of the operating system, opened for appending."""

    __slots__ = ("_budget", "_fd", "_map", "_view")

    def __init__(self, fd: int, budget: MappedBudget) -> None:
        self._fd = fd
        self._budget = budget
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None

    def append(self, data: Buffer) -> int:
        return os.write(self._fd, data)

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._fd, size, position)

    def slice(self, position: int, size: int) -> Buffer:
        if size < SLICED_BYTES_MIN:
            return os.pread(self._fd, size, position)
        end = position + size
        view = self._view
        if view is None or len(view) < end:
            view = self._remap(end)
            if view is None:
                return os.pread(self._fd, size, position)
        assert self._map is not None, "a view has its map"
        self._budget.touch(self._map, size)
        return view[position:end]

    def _remap(self, end: int) -> memoryview | None:
        """Map the file as long as it is now; older maps live on as long as slices of them do."""
        length = os.fstat(self._fd).st_size
        if length < end:
            return None
        self._map = mmap.mmap(self._fd, length, access=mmap.ACCESS_READ)
        self._view = memoryview(self._map)
        return self._view

    def truncate(self, size: int) -> None:
        self._map = self._view = None
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        self._map = self._view = None
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class OsLock:
    """An advisory lock, as Java's ``FileChannel.tryLock`` takes it."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            os.close(fd)


class OsDisk:
    """The real file system."""

    __slots__ = ("_budget",)

    def __init__(self, mapped_bytes_max: int = 16 * 1024 * 1024) -> None:
        self._budget = MappedBudget(mapped_bytes_max)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o644), self._budget)

    def read_file(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write_file(self, path: str, data: Buffer) -> None:
        with open(path, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) or 0 :]

    def sync_file(self, path: str) -> None:
        self._sync(path, os.O_RDONLY)

    def sync_directory(self, path: str) -> None:
        self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def _sync(self, path: str, flags: int) -> None:
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_volume(self, path: str) -> None:
        import ctypes

        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if syncfs(fd):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), path)
        finally:
            os.close(fd)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        with os.scandir(path) as entries:
            return [_entry(each) for each in entries]

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def lock(self, path: str) -> OsLock | None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return OsLock(fd, path)

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def _entry(entry: "os.DirEntry[str]") -> DirectoryEntry:
    if entry.is_dir():
        return DirectoryEntry(entry.name, True, 0, 0)
    found = entry.stat()
    return DirectoryEntry(entry.name, False, found.st_size, found.st_mtime_ns // 1_000_000)
