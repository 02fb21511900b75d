"""The real disk: the same promises as the simulated one, kept by the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.open_files import OpenFiles
from ottla.storage.disk.port import SLICED_BYTES_MIN, Disk, OsDisk, replace_file
from ottla.storage.log.log import Log
from ottla.storage.log.recovery import create_log
from support.logs.builders import a_batch, appended
from support.logs.truth import check_log


@pytest.fixture(params=["real", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Disk, str]]:
    """Both disks, with a directory to work in."""
    if request.param == "real":
        yield OsDisk(), str(tmp_path)
    else:
        disk = CrashDisk(Random(0))
        disk.make_directory("/work")
        yield disk, "/work"


def test_what_is_appended_is_read_anywhere(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/file", create=True)

    assert file.append(b"hello ") == 6
    assert file.append(memoryview(b"world")) == 5

    assert (file.pread(5, 6), file.pread(100, 9), file.pread(5, 50), file.size()) == (
        b"world",
        b"ld",
        b"",
        11,
    )


def test_truncated_file_goes_on_at_its_new_end(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/file", create=True)
    file.append(b"hello world")

    file.truncate(5)
    file.append(b"!")

    assert disk.read_file(f"{root}/file") == b"hello!"


def test_slice_gives_the_bytes_also_of_what_has_grown(place: tuple[Disk, str]) -> None:
    disk, root = place
    content = os.urandom(4 * SLICED_BYTES_MIN)
    file = disk.open(f"{root}/file", create=True)
    file.append(content[: 2 * SLICED_BYTES_MIN])
    early = file.slice(10, SLICED_BYTES_MIN)

    file.append(content[2 * SLICED_BYTES_MIN :])
    late = file.slice(SLICED_BYTES_MIN, 3 * SLICED_BYTES_MIN)

    assert bytes(early) == content[10 : 10 + SLICED_BYTES_MIN]
    assert bytes(late) == content[SLICED_BYTES_MIN:]


def test_names_come_and_go(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directory(f"{root}/a/b")
    disk.make_directory(f"{root}/a/b")
    disk.write_file(f"{root}/a/b/one", b"1")
    disk.rename(f"{root}/a/b/one", f"{root}/a/b/two")
    disk.rename(f"{root}/a/b", f"{root}/a/c")

    entries = disk.list_directory(f"{root}/a/c")
    assert [(entry.name, entry.is_directory, entry.size) for entry in entries] == [("two", False, 1)]
    assert disk.exists(f"{root}/a/c/two")
    disk.remove(f"{root}/a/c/two")
    disk.remove_tree(f"{root}/a")
    assert not disk.exists(f"{root}/a")


def test_missing_files_are_told_alike(place: tuple[Disk, str]) -> None:
    disk, root = place

    for attempt in (
        disk.read_file,
        disk.remove,
        disk.open,
        disk.sync_file,
        disk.list_directory,
        disk.remove_tree,
    ):
        with pytest.raises(FileNotFoundError):
            attempt(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{root}/missing", f"{root}/other")


def test_replaced_file_has_its_new_content_and_no_leftover(place: tuple[Disk, str]) -> None:
    disk, root = place
    replace_file(disk, f"{root}/file", b"old and long")

    replace_file(disk, f"{root}/file", b"new")

    assert disk.read_file(f"{root}/file") == b"new"
    assert [entry.name for entry in disk.list_directory(root)] == ["file"]


def test_volume_has_space(place: tuple[Disk, str]) -> None:
    disk, root = place

    total, usable = disk.space(root)

    assert total >= usable > 0


def test_lock_holds_against_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = OsDisk().lock(path)
    assert lock is not None
    ask = f"from ottla.storage.disk.port import OsDisk; print(OsDisk().lock({path!r}) is None)"

    held = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    lock.release()
    free = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)

    assert (held.stdout.strip(), free.stdout.strip()) == ("True", "False")


def test_log_on_the_real_disk_is_read_back_after_a_restart(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=200_000, max_message_bytes=100_000)
    partition = TopicPartition("orders", 0)
    dirs = LogDirs(OsDisk(), [str(tmp_path)])
    dirs.lock()
    dirs.open(config, {}, 0)
    log = dirs.create(partition, config, now_ms=0)
    for at in range(40):
        appended(log, a_batch(os.urandom(20_000), timestamp=1_000 + at), epoch=at // 10)
    before = log_bytes(log)
    assert len(log.segments) > 3
    dirs.close()

    again = LogDirs(OsDisk(), [str(tmp_path)])
    again.lock()
    again.open(config, {}, 0)

    found = again.logs[partition]
    assert found.was_clean
    assert log_bytes(found) == before
    check_log(found)
    again.close()
    assert not (tmp_path / ".lock").exists()


def log_bytes(log: Log) -> bytes:
    """All of a log through the slices that go to sockets, which must equal what is read to be parsed."""
    parts, offset = [], 0
    while offset < log.end_offset:
        found = log.read(offset, 70_000, log.end_offset)
        assert found is not None
        content = found.read()
        assert bytes(found.buffer()) == content
        parts.append(content)
        offset = list(batches(content))[-1].end_offset
    return b"".join(parts)


def open_below(directory: Path) -> int:
    """How many files of this process lie below a directory."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}").startswith(str(directory))
        except FileNotFoundError:
            continue
    return count


def test_idle_logs_hold_no_file_and_busy_ones_no_more_than_the_limit(tmp_path: Path) -> None:
    directory = LogDirectory(OsDisk(), str(tmp_path), OpenFiles(limit=5))
    logs = [create_log(directory, TopicPartition("t", at), LogConfig(), now_ms=0) for at in range(20)]
    assert open_below(tmp_path) == 0

    for turn in range(3):
        for log in logs:
            appended(log, a_batch(b"x" * turn))

    assert len(directory.open_files) == 5
    assert open_below(tmp_path) == 5
    for log in logs:
        assert log.end_offset == 3
        check_log(log)


def test_slice_outlives_the_file_that_was_let_go(tmp_path: Path) -> None:
    directory = LogDirectory(OsDisk(), str(tmp_path), OpenFiles(limit=1))
    first = create_log(directory, TopicPartition("t", 0), LogConfig(), now_ms=0)
    second = create_log(directory, TopicPartition("t", 1), LogConfig(), now_ms=0)
    appended(first, a_batch(bytes(50_000)))
    found = first.read(0, 10**6, 1)
    assert found is not None

    appended(second, a_batch(b"x"))

    assert len(found.buffer()) == found.size


def test_mapped_pages_are_given_back_past_the_budget(tmp_path: Path) -> None:
    disk = OsDisk(mapped_bytes_max=4 * SLICED_BYTES_MIN)
    file = disk.open(str(tmp_path / "file"), create=True)
    content = os.urandom(40 * SLICED_BYTES_MIN)
    file.append(content)

    slices = [file.slice(at * SLICED_BYTES_MIN, SLICED_BYTES_MIN) for at in range(40)]

    assert b"".join(map(bytes, slices)) == content
    assert disk._budget._touched_bytes <= 4 * SLICED_BYTES_MIN
