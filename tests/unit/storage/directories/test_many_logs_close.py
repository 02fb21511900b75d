"""A broker with many logs closes them in one sync, which promises as much as one sync each."""

from pathlib import Path
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.storage.directories.log_dirs import SYNCED_ONE_BY_ONE_MAX, LogDirs
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.disk.port import Disk, OsDisk
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import FlushWork
from support.logs.builders import a_batch, appended
from unit.storage.disk.test_os_disk import open_below

MANY = SYNCED_ONE_BY_ONE_MAX + 5
CONFIG = LogConfig(segment_bytes=100_000)


def dirs_with_logs(disk: Disk, path: str, open_files_max: int = 512) -> LogDirs:
    dirs = LogDirs(disk, [path], open_files_max=open_files_max)
    dirs.lock()
    dirs.open(CONFIG, {}, 0)
    for number in range(MANY):
        log = dirs.create(TopicPartition("orders", number), CONFIG, now_ms=0)
        appended(log, a_batch(b"x" * number, timestamp=1_000), epoch=3)
        log.high_watermark = log.end_offset
    return dirs


def check_reopened(disk: Disk, path: str) -> None:
    again = LogDirs(disk, [path])
    again.lock()
    again.open(CONFIG, {}, 0)
    assert len(again.logs) == MANY
    for log in again.logs.values():
        assert log.was_clean
        assert (log.end_offset, log.high_watermark, log.recovery_point) == (1, 1, 1)
        assert log.epochs.latest_epoch == 3
    again.close()


@pytest.mark.parametrize("seed", range(5))
def test_many_closed_logs_survive_a_power_cut(seed: int) -> None:
    disk = CrashDisk(Random(seed))
    dirs_with_logs(disk, "/data").close()

    disk.power_cut()

    check_reopened(disk, "/data")


def test_many_logs_on_the_real_disk_are_closed_and_found_again(tmp_path: Path) -> None:
    dirs_with_logs(OsDisk(), str(tmp_path)).close()

    check_reopened(OsDisk(), str(tmp_path))


def test_logs_are_closed_within_the_bound_on_open_files(tmp_path: Path) -> None:
    dirs = dirs_with_logs(OsDisk(), str(tmp_path), open_files_max=4)
    before = open_below(tmp_path)
    most = 0

    class Watched(Log):
        """Counts the open files of logs after each has written what a clean restart wants."""

        __slots__ = ()

        def closing_work(self) -> FlushWork:
            nonlocal most
            work = super().closing_work()
            most = max(most, open_below(tmp_path))
            return work

    for log in dirs.logs.values():
        log.__class__ = Watched
    dirs.close()

    assert 0 < most <= before + 4


def test_power_cut_before_the_sync_leaves_no_mark_of_a_clean_end() -> None:
    disk = CrashDisk(Random(7))
    dirs = dirs_with_logs(disk, "/data")
    seen: list[bool] = []
    disk.before_step = lambda operation: (
        seen.append(disk.exists("/data/.kafka_cleanshutdown")) if operation == "fsync" else None
    )

    dirs.close()

    assert seen[0] is False
    assert disk.exists("/data/.kafka_cleanshutdown")


def test_volume_that_cannot_be_synced_is_not_called_clean() -> None:
    disk = CrashDisk(Random(7))
    dirs = dirs_with_logs(disk, "/data")
    disk.fail = lambda operation: 5 if operation == "fsync" else 0

    dirs.close()

    assert not disk.exists("/data/.kafka_cleanshutdown")
    assert dirs.offline
    with pytest.raises(LogDirectoryFailed):
        dirs.directories["/data"].check_online()
