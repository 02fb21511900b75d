"""A crash at every write, rename and fsync of a scripted life: what was flushed is there, nothing raises."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.crash_disk import CrashDisk, PowerCut
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.logs.life import COMPACTED, PATHS, Life, Promise
from support.logs.truth import check_log

SEEDS = int(os.environ.get("OTTLA_CRASH_SEEDS", "1"))
LATE_MS = 99_000
SHORT_STRIDE = 4
"""Short of the full form, only one step of so many."""


def live(seed: int, at_each_step: Callable[[CrashDisk, Life | None, str], None]) -> int:
    """Live the whole life and look at every moment of it; returns how many there were."""
    disk = CrashDisk(Random(seed))
    for path in PATHS:
        disk.make_directory(path)
    disk.sync_directory("")
    disk.steps = 0
    lives: list[Life] = []
    disk.before_step = lambda step: at_each_step(disk, lives[0] if lives else None, step)
    lives.append(Life(disk, seed))
    lives[0].run()
    return disk.steps


def recovered(disk: CrashDisk, life: Life | None) -> LogDirs:
    dirs = LogDirs(disk, PATHS)
    dirs.lock()
    dirs.claim(1, "cluster", "")
    dirs.open(LogConfig(), life.configs if life is not None else {}, LATE_MS)
    assert dirs.offline == {}
    return dirs


def check_promise(log: Log, promise: Promise, *, is_compacted: bool) -> None:
    if is_compacted:
        assert log.end_offset >= promise.flushed_end
        return
    found = {
        header.base_offset: segment.file().pread(header.size, header.position)
        for segment, header in log.batches_from(log.segments[0].base_offset)
    }
    for base_offset, batch in found.items():
        assert batch in promise.ever[base_offset], f"nobody wrote this at {base_offset}"
    for base_offset, batch in promise.current.items():
        end_offset = read_header(batch).end_offset
        if end_offset <= promise.flushed_end and base_offset >= log.log_start_offset:
            assert found.get(base_offset) == batch, f"{base_offset} was flushed and is not there"


def check_all(dirs: LogDirs, promises: dict[TopicPartition, Promise]) -> None:
    for partition, log in dirs.logs.items():
        check_log(log, is_dense=partition != COMPACTED)
        if partition in promises:
            check_promise(log, promises[partition], is_compacted=partition == COMPACTED)
    for partition, promise in promises.items():
        if promise.flushed_end > 0 and promise.current:
            assert partition in dirs.logs, f"{partition} was flushed and is gone"


def go_on(dirs: LogDirs) -> dict[TopicPartition, int]:
    """The logs take records again after what happened."""
    ends = {}
    for partition, log in dirs.logs.items():
        batch = build_batch([Record(b"after", b"the crash", timestamp=LATE_MS)])
        outcome = log.append_as_leader(batch, read_header(batch), leader_epoch=99, now_ms=LATE_MS)
        assert isinstance(outcome, Appended)
        ends[partition] = log.end_offset
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_cut_at_every_step_leaves_a_sound_log_with_all_that_was_flushed(
    seed: int, full_form: bool
) -> None:
    stride = 1 if full_form else SHORT_STRIDE

    def crash(disk: CrashDisk, life: Life | None, step: str) -> None:
        if disk.steps % stride:
            return
        machine = disk.clone(Random(seed * 1_000_003 + disk.steps))
        machine.power_cut()
        dirs = recovered(machine, life)
        check_all(dirs, life.promises if life is not None else {})
        if disk.steps % (5 * stride) == 0:
            ends = go_on(dirs)
            dirs.close()
            again = recovered(machine, life)
            assert {partition: log.end_offset for partition, log in again.logs.items()} == ends
            assert all(log.was_clean for log in again.logs.values())
            check_all(again, {})

    assert live(seed, crash) >= 1_000


@pytest.mark.slow
def test_killed_process_loses_nothing_that_the_kernel_had() -> None:
    def kill(disk: CrashDisk, life: Life | None, step: str) -> None:
        if disk.steps % 4:
            return
        machine = disk.clone(Random(disk.steps))
        dirs = recovered(machine, life)
        promises = {partition: each.copy() for partition, each in (life.promises if life else {}).items()}
        for promise in promises.values():
            if promise.current and not promise.is_being_cut:
                promise.flushed_end = max(read_header(batch).end_offset for batch in promise.current.values())
        check_all(dirs, promises)

    live(3, kill)


@pytest.mark.slow
def test_second_power_cut_while_recovering_from_the_first_does_no_harm() -> None:
    def crash_twice(disk: CrashDisk, life: Life | None, step: str) -> None:
        if disk.steps % 16:
            return
        for second in (1, 4, 9, 20):
            machine = disk.clone(Random(disk.steps + second))
            machine.power_cut()
            machine.steps, machine.crash_at = 0, second
            try:
                recovered(machine, life)
            except PowerCut:
                machine.power_cut()
            machine.kill()
            check_all(recovered(machine, life), life.promises if life is not None else {})

    live(5, crash_twice)


def lived_until_error(seed: int, at: int) -> tuple[CrashDisk, Life | None, int]:
    """A life whose disk refuses its ``at``-th call, be it a read; what it left, and after how many calls."""
    disk = CrashDisk(Random(seed))
    for path in PATHS:
        disk.make_directory(path)
    disk.sync_directory("")
    calls = 0

    def refuse(_: str) -> int:
        nonlocal calls
        calls += 1
        return errno.EIO if calls == at else 0

    disk.fail = refuse
    life = None
    try:
        life = Life(disk, seed)
        life.run()
    except LogDirectoryFailed:
        assert calls >= at
    except AssertionError:
        assert life is not None
        assert life.dirs.offline, "only what lies in a failed directory may be missing"
    disk.fail = None
    disk.kill()
    return disk, life, calls


@pytest.mark.slow
def test_an_error_of_the_disk_at_any_moment_is_the_failure_of_its_directory_and_no_more() -> None:
    _, _, calls = lived_until_error(4, 0)
    assert calls >= 1_500
    for at in Random(SEEDS).sample(range(1, calls + 1), min(calls, 60 * SEEDS)):
        disk, life, _ = lived_until_error(4, at)

        check_all(recovered(disk, life), life.promises if life is not None else {})
