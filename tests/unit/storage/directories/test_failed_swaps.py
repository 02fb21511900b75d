"""A disk that refuses in the middle of a swap: the replica is where it was, or its directory is offline."""

from __future__ import annotations

import errno
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.storage.directories.future_copy import copy_portion
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.directories.opening import CannotStart
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.log.log import Log
from support.logs.builders import a_batch, all_records, appended
from support.logs.truth import check_log

HERE, THERE = "/a", "/b"
NAME = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=2_000)
TOKEN = "0123456789abcdef0123456789abcdef"
RECORDS = [b"%d" % number for number in range(12)]
LATE_MS = 10**9


class PartlyBrokenDisk(CrashDisk):
    """Refuses to change anything below a path from its n-th change on, once or for good."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.broken = "/nowhere"
        self.sound_changes = 0
        self.is_broken_once = False
        self.changes = 0

    def _refuse(self, path: str) -> None:
        if not path.startswith(self.broken):
            return
        self.changes += 1
        if self.changes == self.sound_changes + 1 or (
            not self.is_broken_once and self.changes > self.sound_changes
        ):
            raise OSError(errno.EIO, "injected", path)

    def break_at(self, path: str, change: int, *, is_once: bool) -> None:
        self.broken, self.sound_changes, self.is_broken_once, self.changes = path, change, is_once, 0

    def rename(self, old: str, new: str) -> None:
        self._refuse(old)
        super().rename(old, new)

    def write_file(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self._refuse(path)
        super().write_file(path, data)

    def sync_file(self, path: str) -> None:
        self._refuse(path)
        super().sync_file(path)

    def sync_directory(self, path: str) -> None:
        self._refuse(path)
        super().sync_directory(path)


def booted(disk: CrashDisk) -> LogDirs:
    dirs = LogDirs(disk, [HERE, THERE])
    dirs.lock()
    dirs.open(CONFIG, {}, 0)
    return dirs


def ready_to_swap(disk: CrashDisk) -> LogDirs:
    """A log in the first directory and its complete copy in the second; only the copy is synced."""
    dirs = booted(disk)
    log = dirs.create(NAME, CONFIG, now_ms=0, directory=HERE)
    for value in RECORDS:
        appended(log, a_batch(value + bytes(500)))
        if value == RECORDS[1]:
            log.flush()
    log.high_watermark = log.end_offset
    future = dirs.futures.begin(NAME, THERE, token=TOKEN, now_ms=0)
    while copy_portion(log, future, 1_000_000, log.end_offset, 0):
        pass
    future.flush()
    return dirs


def values(log: Log) -> list[bytes]:
    return [(record.value or b"").rstrip(b"\0") for record in all_records(log)]


def changes_of_a_swap(path: str) -> int:
    disk = PartlyBrokenDisk()
    dirs = ready_to_swap(disk)
    disk.break_at(path, 1_000, is_once=True)
    dirs.futures.swap(NAME, token=TOKEN)
    return disk.changes


PLACES = [(path, change) for path in (HERE, THERE) for change in range(changes_of_a_swap(path))]


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize(("path", "change"), PLACES)
def test_refusal_at_any_change_of_a_swap_loses_nothing(path: str, change: int, is_once: bool) -> None:
    disk = PartlyBrokenDisk()
    dirs = ready_to_swap(disk)
    disk.break_at(path, change, is_once=is_once)

    with pytest.raises(LogDirectoryFailed) as failed:
        dirs.futures.swap(NAME, token=TOKEN)
    assert failed.value.directory == path
    dirs.take_offline(failed.value.directory, failed.value.reason)

    expected = list(RECORDS)
    if path == THERE:
        log = dirs.logs[NAME]
        assert log.path == f"{HERE}/{NAME}"
        assert values(log) == RECORDS
        appended(log, a_batch(b"later"))
        expected.append(b"later")
        for now_ms in (0, LATE_MS):
            dirs.remove_garbage(now_ms)
        assert [each for each, _ in dirs.flushes_due(LATE_MS)] == [log]
        log.flush()
        assert values(log) == expected
        check_log(log)
    else:
        assert NAME not in dirs.logs
    disk.broken = "/nowhere"
    disk.kill()
    if path == THERE and disk.exists(f"{THERE}/{NAME}"):
        # It would not even take its name back: both places are named, and nothing is lost.
        with pytest.raises(CannotStart, match=r"lies in /b and in /a: remove"):
            booted(disk)
        disk.remove_tree(f"{THERE}/{NAME}")
        disk.kill()

    again = booted(disk)

    assert again.offline == {}
    assert values(again.logs[NAME]) == expected
    check_log(again.logs[NAME])


@pytest.mark.parametrize("change", range(changes_of_a_swap(THERE)))
def test_start_without_the_directory_that_failed_finds_the_log_in_its_old_place(change: int) -> None:
    disk = PartlyBrokenDisk()
    dirs = ready_to_swap(disk)
    disk.break_at(THERE, change, is_once=False)
    with pytest.raises(LogDirectoryFailed):
        dirs.futures.swap(NAME, token=TOKEN)
    disk.kill()

    again = LogDirs(disk, [HERE])
    again.lock()
    again.open(CONFIG, {}, 0)
    for now_ms in (0, LATE_MS):
        again.remove_garbage(now_ms)

    assert values(again.logs[NAME]) == RECORDS


def test_swap_that_a_crash_cut_in_two_is_completed_when_the_dead_directory_is_back() -> None:
    disk = PartlyBrokenDisk()
    dirs = ready_to_swap(disk)
    dirs.futures.swap(NAME, token=TOKEN)
    disk.rename(f"{THERE}/{NAME}", f"{THERE}/{NAME}.{TOKEN}-future")  # as if it had not come so far
    disk.kill()
    disk.break_at(THERE, 0, is_once=False)

    without = booted(disk)
    without.remove_garbage(0)
    without.remove_garbage(LATE_MS)
    assert NAME not in without.logs
    assert list(without.offline) == [THERE]
    disk.kill()
    disk.break_at("/nowhere", 0, is_once=False)
    again = booted(disk)
    again.remove_garbage(0)
    again.remove_garbage(LATE_MS)

    assert again.logs[NAME].directory == THERE
    assert again.logs[NAME].end_offset == len(RECORDS)
    check_log(again.logs[NAME])
    assert [each.name for each in disk.list_directory(HERE) if each.is_directory] == []
