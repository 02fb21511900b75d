"""A crash at every write, rename and fsync of a keeper: all that was synced is there, nothing half."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest

from ottla.keeper.files.errors import FilesFailed, FilesRefused
from ottla.storage.disk.crash_disk import CrashDisk, PowerCut
from support.keeper.life import Life, opened
from support.keeper.script import Script

pytestmark = pytest.mark.slow

SHORT_STRIDE = 5
"""Short of the full form, only one step of so many."""


def a_disk(seed: int) -> CrashDisk:
    disk = CrashDisk(Random(seed))
    disk.make_directory("/disk")
    disk.sync_directory("")
    disk.steps = 0
    return disk


def live(seed: int, at_each_step: Callable[[CrashDisk, Life], None]) -> int:
    """Live the whole life and look at every moment of it; returns how many there were."""
    disk = a_disk(seed)
    life = Life(disk, seed)
    disk.before_step = lambda _: at_each_step(disk, life)
    life.run()
    return disk.steps


def check(disk: CrashDisk, life: Life) -> Script:
    """Whatever was recovered is a state that there was, and not before the last that was synced."""
    files, tree = opened(disk)
    assert files.last_zxid >= life.synced_zxid, "what was synced is gone"
    assert tree.state() == life.states[files.last_zxid], "this state never was"
    files.close()
    return Script(tree, Random(disk.steps), files.last_zxid)


def go_on(disk: CrashDisk, script: Script) -> None:
    """The files take entries and a snapshot again, and keep them over a power cut."""
    files, _ = opened(disk)
    for _ in range(3):
        files.append(*script.next())
    files.begin_snapshot(script.zxid, dict(script.tree.sessions), script.tree.walk())
    while not files.write_some():
        pass
    files.append(*script.next())
    files.sync()
    disk.power_cut()
    files, tree = opened(disk)
    assert (files.last_zxid, tree.state()) == (script.zxid, script.tree.state())


def test_power_cut_at_every_step_keeps_all_that_was_synced(full_form: bool, long_form: bool) -> None:
    stride = 1 if full_form else SHORT_STRIDE
    for seed in range(10 if long_form else 1):

        def crash(disk: CrashDisk, life: Life, seed: int = seed) -> None:
            if disk.steps % stride:
                return
            machine = disk.clone(Random(seed * 1_000_003 + disk.steps))
            machine.power_cut()
            script = check(machine, life)
            if disk.steps % (5 * stride) == 0:
                go_on(machine, script)

        assert live(seed, crash) >= 1_000


def test_killed_process_loses_nothing_that_the_kernel_had(long_form: bool) -> None:
    def kill(disk: CrashDisk, life: Life) -> None:
        if disk.steps % (1 if long_form else 13) == 0:
            machine = disk.clone(Random(disk.steps))
            script = check(machine, life)
            machine.power_cut()
            files, tree = opened(machine)
            assert files.last_zxid == script.zxid, "what a start has shown to clients is gone"
            assert tree.state() == script.tree.state()

    live(3, kill)


def test_second_power_cut_while_recovering_from_the_first_does_no_harm(
    full_form: bool, long_form: bool
) -> None:
    stride = 1 if long_form else 40 if full_form else 40 * SHORT_STRIDE

    def crash_twice(disk: CrashDisk, life: Life) -> None:
        if disk.steps % stride:
            return
        for second in range(1, 8):
            machine = disk.clone(Random(disk.steps + second))
            machine.power_cut()
            machine.steps, machine.crash_at = 0, second
            try:
                opened(machine)
            except PowerCut:
                machine.power_cut()
            machine.kill()
            check(machine, life)

    live(5, crash_twice)


def lived_until_error(at: int) -> tuple[CrashDisk, Life, int]:
    """A life whose disk refuses its ``at``-th call, be it a read; what it left, and after how many calls."""
    disk = a_disk(4)
    life = Life(disk, 4)
    calls = 0

    def refuse(_: str) -> int:
        nonlocal calls
        calls += 1
        return errno.ENOSPC if calls == at else 0

    disk.fail = refuse
    try:
        life.run()
    except FilesRefused:
        assert calls == at
    except FilesFailed:
        assert calls == at
        with pytest.raises(FilesFailed, match=r"cannot write to /disk/keeper .* free some space"):
            life.files.sync()
    disk.kill()
    return disk, life, calls


def test_full_disk_at_any_moment_ends_the_writing_and_loses_nothing_synced(
    full_form: bool, long_form: bool
) -> None:
    _, _, calls = lived_until_error(0)
    assert calls >= 1_000
    for at in Random(1).sample(range(1, calls + 1), calls if long_form else 30 if full_form else 10):
        disk, life, _ = lived_until_error(at)

        check(disk, life)
