"""A disk in memory that can crash, tear writes, forget names and refuse: the ``Disk`` port, simulated.

What was written lives at once, as in a page cache. What survives a power cut is only what was synced, plus
by chance some of the rest: unsynced bytes may be there, be zeros, or be cut short; names made, changed or
removed since the directory was last synced may or may not be.
"""

import errno
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import NamedTuple

from ottla.storage.disk.port import Buffer, DirectoryEntry

SECTOR = 512
NAME_BYTES_MAX = 255


class PowerCut(BaseException):
    """The power failed: nothing after this call happened. Only a test may catch this."""


class Inode:
    """A file's bytes: as written, and as known to be on the disk."""

    __slots__ = ("content", "modified_ms", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = bytearray()
        self.modified_ms = 0

    def survive(self, random: Random) -> None:
        """After a power cut: keep the synced bytes, and a random part of the rest."""
        kept, lost = self.synced, self.content
        same = 0
        while same < min(len(kept), len(lost)) and kept[same] == lost[same]:
            same += 1
        choice = random.random()
        if choice < 0.35 or kept == lost:
            self.content = bytearray(kept)
        elif choice < 0.55:
            self.content = bytearray(lost)
        else:
            end = random.randint(same, max(same, len(lost)))
            torn = bytearray(lost[:end])
            if choice > 0.8 and end > same:
                start = random.randint(same, end)
                torn[start : start + SECTOR] = bytes(min(SECTOR, end - start))
            if len(torn) < len(kept) and same == len(lost):
                torn = bytearray(kept)
            self.content = torn
        self.synced = bytearray(self.content)


class NameChange(NamedTuple):
    """A directory entry made (``inode``), renamed (``new``) or removed (neither); atomic."""

    path: str
    new: str | None = None
    inode: Inode | None = None
    is_made: bool = False

    def apply(self, names: dict[str, Inode | None]) -> None:
        """Apply it, as far as the entries it builds on exist."""
        if self.is_made:
            names[self.path] = self.inode
        elif self.new is None:
            names.pop(self.path, None)
        elif names.get(self.path) is not None:
            names[self.new] = names.pop(self.path)  # a file: nothing is below it
        else:
            for path in [name for name in names if name == self.path or name.startswith(self.path + "/")]:
                names[self.new + path[len(self.path) :]] = names.pop(path)

    def touches(self, directory: str) -> bool:
        return directory in (_parent(self.path), _parent(self.new or self.path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _check_name(path: str) -> None:
    """Refuse names that no file system takes."""
    if len(path.rpartition("/")[2].encode()) > NAME_BYTES_MAX:
        raise OSError(errno.ENAMETOOLONG, "name too long", path)


class CrashFile:
    """An open file of the simulated disk."""

    __slots__ = ("_disk", "_inode")

    def __init__(self, disk: "CrashDisk", inode: Inode) -> None:
        self._disk = disk
        self._inode = inode

    def append(self, data: Buffer) -> int:
        return self._disk._append(self._inode, data)

    def pread(self, size: int, position: int) -> bytes:
        self._disk._check("read")
        return bytes(self._inode.content[position : position + size])

    def slice(self, position: int, size: int) -> Buffer:
        return self.pread(size, position)

    def truncate(self, size: int) -> None:
        self._disk._step("truncate")
        del self._inode.content[size:]

    def size(self) -> int:
        return len(self._inode.content)

    def sync(self) -> None:
        self._disk._sync(self._inode)

    def close(self) -> None:
        return


class CrashLock:
    """A lock that nobody else can take."""

    __slots__ = ("_locked", "_path")

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)


class CrashDisk:
    """A file system of dictionaries. ``steps`` counts what could have been the last thing to happen.

    ``crash_at``: raise ``PowerCut`` in place of that step (a write may be half done by then).
    ``before_step``: called with the name of each step before it happens (in a half-done write: in its midst),
    for a look at a ``clone`` of that moment.
    ``fail``: a function from the name of an operation to an errno, or 0 to let it pass.
    ``capacity_bytes``: beyond it writes are short, then refused with ENOSPC.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.crash_at: int | None = None
        self.steps = 0
        self.fail: Callable[[str], int] | None = None
        self.before_step: Callable[[str], None] | None = None
        self.capacity_bytes: int | None = None
        self.now_ms = 0
        self._names: dict[str, Inode | None] = {"": None}
        self._synced_names: dict[str, Inode | None] = {"": None}
        self._unsynced_changes: list[NameChange] = []
        self._locked: set[str] = set()

    # -- faults ------------------------------------------------------------------------------------

    def _check(self, operation: str) -> None:
        if self.fail is not None and (code := self.fail(operation)):
            raise OSError(code, f"injected at {operation}")

    def _step(self, operation: str) -> None:
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            raise PowerCut(operation)
        if self.before_step is not None:
            self.before_step(operation)
        self._check(operation)

    def power_cut(self, *, keeps_order_of_names: bool = False) -> None:
        """Lose a random part of what is not synced, and forget the fault plan: the machine starts again.

        ``keeps_order_of_names``: no directory entry survives without those that were changed before it.
        """
        names = self._synced_names
        changes = self._unsynced_changes
        in_order = self._random.random() < 0.5 or keeps_order_of_names
        cut = self._random.randint(0, len(changes))
        for at, change in enumerate(changes):
            if at < cut if in_order else self._random.random() < 0.5:
                change.apply(names)
        for path in sorted(names):
            if path and _parent(path) not in names:
                del names[path]
        for inode in names.values():
            if inode is not None:
                inode.survive(self._random)
        self._names = names
        self._synced_names = dict(names)
        self.kill()
        self._unsynced_changes = []

    def clone(self, random: Random) -> "CrashDisk":
        """A copy of the disk with its content."""
        twin = CrashDisk(random)
        twin.now_ms = self.now_ms
        twin._names, twin._synced_names, twin._unsynced_changes = deepcopy(
            (self._names, self._synced_names, self._unsynced_changes)
        )
        return twin

    def kill(self) -> None:
        """The process died, the machine did not: everything written stays."""
        self._locked = set()
        self.crash_at = None
        self.fail = None

    def _change(self, operation: str, change: NameChange) -> None:
        _check_name(change.new or change.path)
        self._step(operation)
        change.apply(self._names)
        self._unsynced_changes.append(change)

    # -- writes ------------------------------------------------------------------------------------

    def _used_bytes(self) -> int:
        return sum(len(inode.content) for inode in self._names.values() if inode is not None)

    def _append(self, inode: Inode, data: Buffer) -> int:
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            inode.content += memoryview(data)[: self._random.randint(0, len(data))]
            raise PowerCut("write")
        if self.before_step is not None:
            size = len(inode.content)
            inode.content += memoryview(data)[: self._random.randint(0, len(data))]
            self.before_step("write")
            del inode.content[size:]
        self._check("write")
        room = len(data)
        if self.capacity_bytes is not None:
            room = min(room, self.capacity_bytes - self._used_bytes())
            if room <= 0:
                raise OSError(errno.ENOSPC, "no space left")
        inode.content += memoryview(data)[:room]
        inode.modified_ms = self.now_ms
        return room

    def _sync(self, inode: Inode) -> None:
        self._step("fsync")
        inode.synced = bytearray(inode.content)

    # -- the port ----------------------------------------------------------------------------------

    def _inode(self, path: str) -> Inode:
        inode = self._names.get(path)
        if inode is None:
            code = errno.EISDIR if path in self._names else errno.ENOENT
            raise OSError(code, "no such file", path)
        return inode

    def open(self, path: str, *, create: bool = False) -> CrashFile:
        if create and path not in self._names:
            self._make(path)
        self._check("open")
        return CrashFile(self, self._inode(path))

    def _make(self, path: str) -> Inode:
        if _parent(path) not in self._names:
            raise OSError(errno.ENOENT, "no such directory", path)
        inode = Inode()
        inode.modified_ms = self.now_ms
        self._change("create", NameChange(path, inode=inode, is_made=True))
        return inode

    def read_file(self, path: str) -> bytes:
        self._check("read")
        return bytes(self._inode(path).content)

    def write_file(self, path: str, data: Buffer) -> None:
        if path not in self._names:
            self._make(path)
        inode = self._inode(path)
        if inode.content:
            self._step("truncate")
            inode.content = bytearray()
        rest = memoryview(data)
        while rest:
            rest = rest[self._append(inode, rest) :]

    def sync_file(self, path: str) -> None:
        if path in self._names and self._names[path] is None:
            self.sync_directory(path)
        else:
            self._sync(self._inode(path))

    def sync_directory(self, path: str) -> None:
        if path not in self._names:
            raise OSError(errno.ENOENT, "no such directory", path)
        self._step("fsync")
        others: list[NameChange] = []
        for change in self._unsynced_changes:
            if change.touches(path):
                change.apply(self._synced_names)
            else:
                others.append(change)
        self._unsynced_changes = others

    def sync_volume(self, path: str) -> None:
        self._step("fsync")
        for change in self._unsynced_changes:
            change.apply(self._synced_names)
        self._unsynced_changes = []
        for inode in self._names.values():
            if inode is not None:
                inode.synced = bytearray(inode.content)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        self._check("list")
        if path not in self._names:
            raise OSError(errno.ENOENT, "no such directory", path)
        return [
            DirectoryEntry(name.rpartition("/")[2], inode is None, *_facts(inode))
            for name, inode in sorted(self._names.items())
            if name and _parent(name) == path
        ]

    def make_directory(self, path: str) -> None:
        if path in self._names:
            return
        parent = _parent(path)
        if parent not in self._names:
            self.make_directory(parent)
        self._change("mkdir", NameChange(path, is_made=True))

    def exists(self, path: str) -> bool:
        return path in self._names

    def rename(self, old: str, new: str) -> None:
        if old not in self._names:
            raise OSError(errno.ENOENT, "no such file", old)
        self._change("rename", NameChange(old, new=new))

    def remove(self, path: str) -> None:
        self._inode(path)
        self._change("remove", NameChange(path))

    def remove_tree(self, path: str) -> None:
        if path not in self._names:
            raise OSError(errno.ENOENT, "no such directory", path)
        for name in sorted((n for n in self._names if n.startswith(path + "/")), reverse=True):
            self._change("remove", NameChange(name))
        self._change("remove", NameChange(path))

    def lock(self, path: str) -> CrashLock | None:
        if path in self._locked:
            return None
        self._locked.add(path)
        return CrashLock(self._locked, path)

    def space(self, path: str) -> tuple[int, int]:
        total = self.capacity_bytes if self.capacity_bytes is not None else 2**40
        return total, max(0, total - self._used_bytes())


def _facts(inode: Inode | None) -> tuple[int, int]:
    return (0, 0) if inode is None else (len(inode.content), inode.modified_ms)
