"""A log's copy in another directory: kept over restarts, and after a crash there is always one whole log."""

from contextlib import suppress
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.storage.cleanup.compaction import Compaction, CompactionResult
from ottla.storage.cleanup.plan import plan_compaction
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.directories.future_copy import common_end, copy_portion
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.checkpoints import RECOVERY_POINTS, read_offsets
from ottla.storage.disk.crash_disk import CrashDisk, PowerCut
from ottla.storage.disk.file_names import future_partition_of
from ottla.storage.log.log import Log
from support.logs.builders import a_batch, all_records, appended
from support.logs.truth import check_log

CONFIG = LogConfig(segment_bytes=10_000)
NAME = TopicPartition("orders", 0)
TOKEN = "0123456789abcdef0123456789abcdef"
RECORDS = 12
SMALL = LogConfig(segment_bytes=2_000)
COMPACTED = LogConfig(segment_bytes=600, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)


def a_machine(seed: int = 1) -> CrashDisk:
    """A disk with two empty log directories that were there before."""
    disk = CrashDisk(Random(seed))
    for path in ("/a", "/b"):
        disk.make_directory(path)
    disk.sync_volume("/")
    return disk


def booted(disk: CrashDisk, config: LogConfig = CONFIG) -> LogDirs:
    dirs = LogDirs(disk, ["/a", "/b"])
    dirs.lock()
    dirs.open(config, {}, 0)
    return dirs


def contents(log: Log) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.key) for record in all_records(log)]


def with_copy(disk: CrashDisk, max_bytes: int = 10_000_000) -> LogDirs:
    """A synced log in the first directory, and a copy in the second, of so many bytes."""
    dirs = booted(disk)
    log = dirs.create(NAME, CONFIG, now_ms=0, directory="/a")
    for number in range(RECORDS):
        appended(log, a_batch(bytes(900), timestamp=number), epoch=number // 4)
    log.high_watermark = log.end_offset
    log.flush()
    future = dirs.futures.begin(NAME, "/b", token=TOKEN, now_ms=0)
    while copy_portion(log, future, max_bytes, log.end_offset, 0):
        if max_bytes < 10_000_000:
            break
    future.flush()
    return dirs


def a_compacted_log(dirs: LogDirs) -> Log:
    """A synced log with holes, more than a segment can bridge, and a dirty end."""
    log = dirs.create(NAME, COMPACTED, now_ms=0, directory="/a")
    for number in range(40):
        appended(log, a_batch(bytes(20), key=b"hot", timestamp=number))
        appended(log, a_batch(bytes(60), key=b"key %d" % number, timestamp=number))
    for number in range(10):
        appended(log, a_batch(bytes(60), key=b"late %d" % number, timestamp=number))
    log.high_watermark = log.end_offset
    plan = plan_compaction(log, 1_000)
    assert plan is not None
    log.flush()
    result = Compaction(log.home.directory, plan)()
    assert isinstance(result, CompactionResult)
    assert swap_in(log, result)
    dirs.checkpoints.write_recovery_points()
    return log


def copied(dirs: LogDirs, log: Log, *, up_to: int | None = None) -> Log:
    """The log's copy, filled batch by batch."""
    future = dirs.futures.get(NAME) or dirs.futures.begin(NAME, "/b", token=TOKEN, now_ms=0)
    while (up_to is None or future.end_offset < up_to) and copy_portion(log, future, 200, log.end_offset, 0):
        pass
    return future


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        (f"orders-7.{TOKEN}-future", TopicPartition("orders", 7)),
        (f"a.b-c-12.{TOKEN}-future", TopicPartition("a.b-c", 12)),
        ("orders-7", None),
        (f"orders-7.{TOKEN}-delete", None),
        (f"orders-99999999999.{TOKEN}-future", None),
        ("orders-future", None),
    ],
)
def test_name_tells_whose_copy_it_is(name: str, partition: TopicPartition | None) -> None:
    assert future_partition_of(name) == partition


@pytest.mark.parametrize("is_clean", [True, False])
def test_half_a_copy_is_found_again_and_completed(is_clean: bool) -> None:
    disk = a_machine()
    dirs = with_copy(disk, max_bytes=3_000)
    if is_clean:
        dirs.close()
    disk.kill()

    again = booted(disk)
    log, future = again.logs[NAME], again.futures.get(NAME)
    assert future is not None
    assert 0 < future.end_offset < log.end_offset == RECORDS
    while copy_portion(log, future, 3_000, log.end_offset, 0):
        pass
    moved = again.futures.swap(NAME, token=TOKEN)

    assert moved is again.logs[NAME]
    assert (moved.directory, moved.end_offset, again.futures.get(NAME)) == ("/b", RECORDS, None)
    assert moved.epochs.entries() == log.epochs.entries()
    check_log(moved)


def test_log_whose_start_overtakes_its_copy_is_copied_from_there() -> None:
    dirs = with_copy(a_machine(), max_bytes=1_000)
    log, future = dirs.logs[NAME], dirs.futures.get(NAME)
    assert future is not None
    log.raise_log_start_offset(9)

    while copy_portion(log, future, 3_000, log.end_offset, 0):
        pass

    assert (future.log_start_offset, future.end_offset) == (9, RECORDS)
    assert dirs.futures.swap(NAME, token=TOKEN).log_start_offset == 9


def steps_of_a_swap() -> tuple[int, int]:
    disk = a_machine()
    dirs = with_copy(disk)
    first = disk.steps
    dirs.futures.swap(NAME, token=TOKEN)
    return first, disk.steps


FIRST, LAST = steps_of_a_swap()


@pytest.mark.parametrize("is_power_cut", [True, False])
@pytest.mark.parametrize("step", range(FIRST + 1, LAST + 2))
def test_crash_at_any_step_of_the_swap_leaves_one_whole_log(step: int, is_power_cut: bool) -> None:
    disk = a_machine(step)
    dirs = with_copy(disk)
    disk.crash_at = step
    if step <= LAST:
        with pytest.raises(PowerCut):
            dirs.futures.swap(NAME, token=TOKEN)
    else:
        dirs.futures.swap(NAME, token=TOKEN)
    if is_power_cut:
        disk.power_cut()
    else:
        disk.kill()

    again = booted(disk)

    assert again.logs[NAME].end_offset == RECORDS
    assert not again.offline
    check_log(again.logs[NAME])


@pytest.mark.parametrize("seed", range(8))
def test_what_the_log_had_synced_survives_a_power_cut_in_its_copy(seed: int) -> None:
    disk = a_machine(seed)
    dirs = with_copy(disk)
    log = dirs.logs[NAME]
    appended(log, a_batch(b"late"), epoch=3)
    log.flush()
    future = dirs.futures.get(NAME)
    assert future is not None
    copy_portion(log, future, 1_000_000, log.end_offset, 0)

    dirs.futures.swap(NAME, token=TOKEN)
    disk.power_cut()

    assert booted(disk).logs[NAME].end_offset == RECORDS + 1


def test_compacted_log_that_was_moved_is_whole_after_a_kill() -> None:
    disk = a_machine()
    dirs = booted(disk, COMPACTED)
    log = a_compacted_log(dirs)
    before = contents(log)
    copied(dirs, log, up_to=60)
    dirs.checkpoints.write_recovery_points()
    copied(dirs, log).flush()

    dirs.futures.swap(NAME, token=TOKEN)
    disk.kill()

    assert contents(booted(disk, COMPACTED).logs[NAME]) == before


def steps_of_a_compacted_swap() -> tuple[int, int]:
    disk = a_machine()
    dirs = booted(disk, COMPACTED)
    copied(dirs, a_compacted_log(dirs)).flush()
    dirs.checkpoints.write_recovery_points()
    first = disk.steps
    dirs.futures.swap(NAME, token=TOKEN)
    return first, disk.steps


FIRST_COMPACTED, LAST_COMPACTED = steps_of_a_compacted_swap()


@pytest.mark.parametrize("step", range(FIRST_COMPACTED + 1, LAST_COMPACTED + 1))
def test_crash_at_any_step_of_the_swap_of_a_compacted_log_leaves_one_whole_log(step: int) -> None:
    disk = a_machine(step)
    dirs = booted(disk, COMPACTED)
    log = a_compacted_log(dirs)
    before = contents(log)
    copied(dirs, log).flush()
    dirs.checkpoints.write_recovery_points()
    disk.crash_at = step
    with pytest.raises(PowerCut):
        dirs.futures.swap(NAME, token=TOKEN)

    disk.power_cut()
    for second in (*range(1, 30, 2), 1_000):  # steps of the next start; in the end it comes through
        machine = disk.clone(Random(second))
        machine.crash_at = second
        with suppress(PowerCut):
            booted(machine, COMPACTED)
        machine.power_cut()
        assert contents(booted(machine, COMPACTED).logs[NAME]) == before


@pytest.mark.parametrize("seed", range(40))
def test_power_cut_in_the_middle_of_a_copy_leaves_nothing_out_of_it(seed: int) -> None:
    disk = a_machine(seed)
    dirs = booted(disk, SMALL)
    log = dirs.create(NAME, SMALL, now_ms=0, directory="/a")
    for number in range(24):
        appended(log, a_batch(bytes(400), timestamp=number))
    log.flush()
    copied(dirs, log, up_to=18)
    disk.sync_directory("/b")
    disk.power_cut()

    again = booted(disk, SMALL)
    copied(again, again.logs[NAME])
    moved = again.futures.swap(NAME, token=TOKEN)

    assert [header.base_offset for _, header in moved.batches_from(0)] == list(range(24))
    check_log(moved)


def test_copy_of_another_life_says_nothing_of_the_one_that_is_begun_now() -> None:
    """Or a restart would not look at what the new copy may have lost."""
    disk = a_machine()
    dirs = booted(disk, COMPACTED)
    log = a_compacted_log(dirs)
    copied(dirs, log).flush()
    dirs.checkpoints.write_recovery_points()
    assert read_offsets(disk, "/b", RECOVERY_POINTS) == {NAME: log.end_offset}

    dirs.futures.begin(NAME, "/b", token=TOKEN[::-1], now_ms=0)

    assert read_offsets(disk, "/b", RECOVERY_POINTS) == {}


def test_segments_that_a_copy_finishes_do_not_make_the_log_flush() -> None:
    dirs = booted(a_machine(), SMALL)
    log = dirs.create(NAME, SMALL, now_ms=0, directory="/a")
    for number in range(24):
        appended(log, a_batch(bytes(400), timestamp=number))
    log.flush()
    copied(dirs, log)
    appended(log, a_batch(b"in the active segment"))

    assert dirs.flushes_due(0) == []
    copied(dirs, log)
    dirs.futures.swap(NAME, token=TOKEN)

    assert dirs.directories["/b"].rolled == set()


@pytest.mark.parametrize(
    ("of_copy", "of_log", "end"),
    [
        ([1, 1, 2], [1, 1, 2, 2], 3),
        ([1, 1, 2, 2], [1, 1, 2], 3),
        ([1, 1, 1, 1], [1, 2, 2, 2], 1),
        ([1, 1, 3, 3], [1, 1, 2, 2], 2),
        ([1, 2, 2, 2], [1, 1, 1, 3], 1),
        ([1, 1, 1, 1], [2, 2, 2, 2], 0),
        ([], [1, 1], 0),
        ([1, 1], [], 0),
    ],
)
def test_copy_is_true_up_to_the_last_epoch_that_both_have(
    of_copy: list[int], of_log: list[int], end: int
) -> None:
    dirs = booted(a_machine())
    log = dirs.create(NAME, CONFIG, now_ms=0, directory="/a")
    future = dirs.futures.begin(NAME, "/b", token=TOKEN, now_ms=0)
    for one, epochs in ((future, of_copy), (log, of_log)):
        for offset, epoch in enumerate(epochs):
            one.append_as_follower(a_batch(b"v", base_offset=offset, leader_epoch=epoch), now_ms=0)

    assert common_end(log, future) == end


def test_copy_left_alone_without_a_swap_under_way_is_no_log() -> None:
    disk = a_machine()
    dirs = with_copy(disk)
    dirs.close()
    disk.remove_tree("/a/orders-0")

    again = booted(disk)

    assert NAME not in again.logs
    assert again.futures.get(NAME) is not None


def test_deleting_a_log_deletes_its_copy() -> None:
    disk = a_machine()
    dirs = with_copy(disk)

    dirs.delete(NAME, token=TOKEN)

    assert dirs.futures.get(NAME) is None
    assert not [each.name for each in disk.list_directory("/b") if each.name.endswith("-future")]
