"""A broker's disks: one behind each log directory, so that one may fail while the others go on."""

import errno
from random import Random

from ottla.storage.disk.crash_disk import CrashDisk, CrashFile, CrashLock
from ottla.storage.disk.port import Buffer, DirectoryEntry


class Disks:
    """The ``Disk`` port over several simulated disks; a path's first part says whose it is."""

    def __init__(self, chance: Random, directories: tuple[str, ...]) -> None:
        self._chance = chance
        self.disks = {directory: CrashDisk(chance) for directory in directories}

    def _of(self, path: str) -> CrashDisk:
        return self.disks["/" + path.split("/", 2)[1]]

    # -- faults ------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process is gone, the machine is not; a bad disk stays bad."""
        for disk in self.disks.values():
            fail = disk.fail
            disk.kill()
            disk.fail = fail

    def power_cut(self) -> None:
        """As on a file system with a journal, which keeps the order of names. On one that loses a log's first
        segment and keeps its second a replica's log begins later, and nobody can tell that from retention."""
        for disk in self.disks.values():
            disk.power_cut(keeps_order_of_names=True)

    def wipe(self) -> None:
        """Empty disks stand where the old ones stood."""
        self.disks = {directory: CrashDisk(self._chance) for directory in self.disks}

    def fill(self, directory: str, room_bytes: int) -> None:
        """Somebody else's files leave so much room."""
        disk = self.disks[directory]
        total, free = disk.space(directory)
        disk.capacity_bytes = total - free + room_bytes

    def spoil(self, directory: str, operations: frozenset[str]) -> None:
        """From now on the disk answers these operations with an I/O error."""
        self.disks[directory].fail = lambda operation: errno.EIO if operation in operations else 0

    def heal(self) -> None:
        """All disks work and have room."""
        for disk in self.disks.values():
            disk.fail = None
            disk.capacity_bytes = None

    # -- the port ----------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> CrashFile:
        return self._of(path).open(path, create=create)

    def read_file(self, path: str) -> bytes:
        return self._of(path).read_file(path)

    def write_file(self, path: str, data: Buffer) -> None:
        self._of(path).write_file(path, data)

    def sync_file(self, path: str) -> None:
        self._of(path).sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._of(path).sync_directory(path)

    def sync_volume(self, path: str) -> None:
        self._of(path).sync_volume(path)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        return self._of(path).list_directory(path)

    def make_directory(self, path: str) -> None:
        self._of(path).make_directory(path)

    def exists(self, path: str) -> bool:
        return self._of(path).exists(path)

    def rename(self, old: str, new: str) -> None:
        self._of(old).rename(old, new)

    def remove(self, path: str) -> None:
        self._of(path).remove(path)

    def remove_tree(self, path: str) -> None:
        self._of(path).remove_tree(path)

    def lock(self, path: str) -> CrashLock | None:
        return self._of(path).lock(path)

    def space(self, path: str) -> tuple[int, int]:
        return self._of(path).space(path)
