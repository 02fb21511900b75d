"""A compaction in a thread, while the log that it reads is cut, deleted or moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.storage.cleanup.cleaner import Cleaner, CleanerRun
from ottla.storage.cleanup.compaction import Uncleanable
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.crash_disk import CrashDisk, CrashFile
from ottla.storage.log.log import Log
from support.logs.builders import ORDERS_0, a_batch, a_disk, all_records, appended, files_of

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact", "delete"}),
    segment_bytes=400,
    min_cleanable_dirty_ratio=0.0,
    retention_ms=1_000,
    file_delete_delay_ms=0,
)
TOKEN = "0123456789abcdef" * 2
LATE_MS = 100_000


def booted(disk: CrashDisk) -> LogDirs:
    dirs = LogDirs(disk, ["/data", "/other"])
    dirs.lock()
    dirs.open(CONFIG, {}, 0)
    return dirs


def a_dirty_log(dirs: LogDirs, config: LogConfig = CONFIG) -> Log:
    log = dirs.create(ORDERS_0, config, now_ms=0, directory="/data")
    for number in range(40):
        appended(log, a_batch(bytes(50), key=b"key %d" % (number % 3), timestamp=1_000 + number))
    log.set_high_watermark(log.end_offset)
    return log


def begun(dirs: LogDirs) -> tuple[Cleaner, CleanerRun]:
    cleaner = Cleaner(dirs)
    run = cleaner.next_run(2_000)
    assert run is not None
    return cleaner, run


def in_the_midst(run: CleanerRun, monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> object:
    """Do the run's work; the event happens in the loop before the run's tenth look at a file."""
    looks = 0
    pread = CrashFile.pread

    def look(self: CrashFile, size: int, position: int) -> bytes:
        nonlocal looks
        looks += 1
        if looks == 10:
            event()
        return pread(self, size, position)

    monkeypatch.setattr(CrashFile, "pread", look)
    outcome = run.work()
    monkeypatch.undo()
    assert looks >= 10
    return outcome


def leftovers(log: Log) -> list[str]:
    return [name for name in files_of(log) if ".cleaned" in name]


EVENTS: dict[str, Callable[[LogDirs, Log], object]] = {
    "deleted": lambda dirs, log: dirs.delete(ORDERS_0, token=TOKEN),
    "cut": lambda dirs, log: log.truncate_to(3),
    "begun anew": lambda dirs, log: log.truncate_fully_and_start_at(7),
    "on its way to another directory": lambda dirs, log: dirs.futures.begin(
        ORDERS_0, "/other", token=TOKEN, now_ms=0
    ),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("is_at_work", [True, False])
def test_log_that_changes_under_a_compaction_ends_it_and_is_no_failure_of_the_disk(
    event: str, is_at_work: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)

    if is_at_work:
        outcome = in_the_midst(run, monkeypatch, lambda: EVENTS[event](dirs, log))
    else:
        EVENTS[event](dirs, log)
        outcome = run.work()

    assert outcome is None
    assert not cleaner.finished(run, outcome)
    assert (dirs.offline, cleaner.uncleanable, leftovers(log)) == ({}, {}, [])


def test_run_that_ended_before_it_heard_of_the_end_of_its_log_leaves_nothing() -> None:
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)
    outcome = run.work()
    assert leftovers(log) != []

    log.truncate_to(3)

    assert not cleaner.finished(run, outcome)
    assert (dirs.offline, leftovers(log), log.end_offset) == ({}, [], 3)


def test_deleted_directory_stays_until_the_compaction_in_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = a_disk()
    dirs = booted(disk)
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)

    def delete() -> None:
        dirs.delete(ORDERS_0, token=TOKEN)
        dirs.remove_garbage(LATE_MS)

    outcome = in_the_midst(run, monkeypatch, delete)
    assert disk.exists(log.path)
    cleaner.finished(run, outcome)
    dirs.remove_garbage(LATE_MS)

    assert not disk.exists(log.path)
    assert dirs.offline == {}


def test_retention_waits_for_the_end_of_a_compaction() -> None:
    """Or a log that is always dirty would never be compacted to its end."""
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)

    assert apply_retention(log, LATE_MS) == []
    assert cleaner.finished(run, run.work())

    assert apply_retention(log, LATE_MS) != []
    assert log.log_start_offset == log.end_offset


def test_log_that_is_no_longer_compacted_keeps_what_the_run_would_have_taken() -> None:
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)
    outcome = run.work()

    log.config = replace(CONFIG, cleanup_policy=frozenset({"delete"}))

    assert not cleaner.finished(run, outcome)
    assert len(all_records(log)) == 40
    assert leftovers(log) == []


def test_log_is_not_compacted_while_it_is_copied_to_another_directory() -> None:
    """Or a copy that has a record already would never hear of the tombstone that took it away."""
    dirs = booted(a_disk())
    a_dirty_log(dirs)
    dirs.futures.begin(ORDERS_0, "/other", token=TOKEN, now_ms=0)
    cleaner = Cleaner(dirs)

    assert cleaner.next_run(2_000) is None
    dirs.futures.drop(ORDERS_0, token=TOKEN)

    assert cleaner.next_run(2_000) is not None


def test_result_that_comes_when_the_copying_has_begun_is_dropped() -> None:
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)
    outcome = run.work()

    dirs.futures.begin(ORDERS_0, "/other", token=TOKEN, now_ms=0)

    assert not cleaner.finished(run, outcome)
    assert len(all_records(log)) == 40
    assert leftovers(log) == []


def test_log_that_could_not_be_cleaned_is_forgotten_with_its_topic() -> None:
    dirs = booted(a_disk())
    log = a_dirty_log(dirs)
    cleaner, run = begun(dirs)
    cleaner.finished(run, Uncleanable("a batch is not as it was written"))
    assert cleaner.next_run(2_000) is None

    dirs.delete(ORDERS_0, token=TOKEN)
    made = a_dirty_log(dirs)
    found = cleaner.next_run(2_000)

    assert made is not log
    assert found is not None
    assert found.log is made
    assert cleaner.uncleanable == {}


def test_file_that_is_missing_for_no_reason_takes_the_directory_offline() -> None:
    disk = a_disk()
    dirs = booted(disk)
    log = a_dirty_log(dirs)
    _, run = begun(dirs)
    disk.remove(log.segments[1].path(".log"))

    with pytest.raises(LogDirectoryFailed):
        run.work()
