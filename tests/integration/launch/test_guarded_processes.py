"""A guarded process never outlives the one that started it, and dies of nothing else."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from ottla.launch.processes import GuardedProcess, is_frozen
from ottla.launch.refusal import LaunchRefused
from support.running.waiting import wait_until

SLEEP = ["sleep", "600"]

# A parent that starts a guarded process (from a thread that ends at once), tells both process ids and waits.
PARENT = """
import json, sys, threading, time
from pathlib import Path
from ottla.launch.processes import GuardedProcess, is_frozen

made = []
out = Path(sys.argv[1])
starter = threading.Thread(target=lambda: made.append(GuardedProcess(["sleep", "600"], output=out)))
starter.start()
starter.join()
{extra}
print(json.dumps({{"child": made[0].pid, "guard": made[0]._guard.pid}}), flush=True)
time.sleep(600)
"""
FORK_THAT_KEEPS_THE_PIPE = "import os\nif os.fork() == 0: time.sleep(20); os._exit(0)"


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a corpse."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def parent(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    code = PARENT.format(extra=getattr(request, "param", ""))
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "out"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def gone(pids: dict[str, int]) -> bool:
    return not any(is_running(pid) for pid in pids.values())


@pytest.mark.parametrize(
    "parent", ["", FORK_THAT_KEEPS_THE_PIPE], indirect=True, ids=["alone", "with a fork"]
)
def test_child_ends_when_its_parent_is_killed(parent: tuple[subprocess.Popen[str], dict[str, int]]) -> None:
    process, pids = parent
    assert is_running(pids["child"]), "the thread that started it has ended, and that must not matter"

    process.kill()
    process.wait()

    wait_until(lambda: gone(pids), "guard and child are gone")


def test_child_ends_when_its_guard_is_killed(parent: tuple[subprocess.Popen[str], dict[str, int]]) -> None:
    _, pids = parent

    os.kill(pids["guard"], signal.SIGKILL)

    wait_until(lambda: not is_running(pids["child"]), "the child is gone")


def test_stopped_child_ends_with_its_parent_too(parent: tuple[subprocess.Popen[str], dict[str, int]]) -> None:
    process, pids = parent
    os.kill(pids["child"], signal.SIGSTOP)

    process.kill()
    process.wait()

    wait_until(lambda: gone(pids), "guard and child are gone")


def test_stop_asks_with_sigterm_and_tells_the_exit_code(tmp_path: Path) -> None:
    script = "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    process = GuardedProcess(["sh", "-c", script], output=tmp_path / "out")
    wait_until(lambda: "ready" in (tmp_path / "out").read_text(), "the script is ready")

    assert process.stop() == 7
    assert (tmp_path / "out").read_text() == "ready\nasked\n"
    assert not is_running(process.pid)


def test_child_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
    process = GuardedProcess(["sh", "-c", script], output=tmp_path / "out", grace_s=0.2)
    wait_until(lambda: "ready" in (tmp_path / "out").read_text(), "the script is ready")

    assert process.stop() == 128 + signal.SIGKILL


def test_end_of_the_child_is_seen_with_its_exit_code(tmp_path: Path) -> None:
    with GuardedProcess(["sh", "-c", "exit 3"], output=tmp_path / "out") as process:
        assert process.wait(10) == 3
        assert process.exit_code() == 3


def test_killed_child_is_told_by_its_signal(tmp_path: Path) -> None:
    with GuardedProcess(SLEEP, output=tmp_path / "out") as process:
        assert process.exit_code() is None
        assert process.wait(0) is None
        assert process.kill() == 128 + signal.SIGKILL


BUSY = """
import hashlib, sys, threading
data = bytes(20_000_000)
def work():
    while True:
        hashlib.sha256(data).digest()
for _ in range(4):
    threading.Thread(target=work).start()
print("busy", flush=True)
"""


def test_when_a_process_is_frozen_all_its_threads_stand_still(tmp_path: Path) -> None:
    with GuardedProcess([sys.executable, "-c", BUSY], output=tmp_path / "out") as process:
        wait_until(lambda: "busy" in (tmp_path / "out").read_text(), "its threads work")
        for _ in range(20):
            process.freeze()
            assert is_frozen(process.pid)
            process.send(signal.SIGCONT)
            wait_until(lambda: not is_frozen(process.pid), "it goes on")
        process.kill()


def test_command_that_does_not_exist_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LaunchRefused, match="cannot start /no/such/program: No such file or directory"):
        GuardedProcess(["/no/such/program"], output=tmp_path / "out")


def test_descriptors_to_hold_stay_open_in_the_child(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    process = GuardedProcess(SLEEP, output=tmp_path / "out", held=(write_end,))
    os.close(write_end)
    os.set_blocking(read_end, False)
    try:
        with pytest.raises(BlockingIOError):
            os.read(read_end, 1)
        process.stop()
        assert os.read(read_end, 1) == b""
    finally:
        os.close(read_end)


def test_threads_may_start_processes_at_the_same_time(tmp_path: Path) -> None:
    made: list[GuardedProcess] = []
    threads = [
        Thread(target=lambda n=n: made.append(GuardedProcess(SLEEP, output=tmp_path / str(n))))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [process.stop() for process in made] == [128 + signal.SIGTERM] * 8


def test_what_the_command_had_started_ends_with_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    leave_one = f"sleep 600 & echo $! > {told}.new; mv {told}.new {told}; exec sleep 600"
    with GuardedProcess(["sh", "-c", leave_one], output=tmp_path / "out") as process:
        wait_until(told.exists, "it has started another")
        below = int(told.read_text())
        assert is_running(below)

        process.stop()

    wait_until(lambda: not is_running(below), "the other has ended too")


class _Asked(Exception):
    """What a handler raises: somebody pressed Ctrl-C."""


class SignalledLock:
    """The lock of a Popen, on which a signal comes as soon as it is taken."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.release = lock.release
        self.__enter__, self.__exit__ = lock.__enter__, lock.__exit__

    def acquire(self, *arguments: bool) -> bool:
        is_taken: bool = self._lock.acquire(*arguments)
        signal.raise_signal(signal.SIGTERM)
        return is_taken


@pytest.mark.parametrize("wait", [GuardedProcess.exit_code, lambda process: process.wait(0.05)])
def test_a_signal_in_the_midst_of_a_look_leaves_nothing_behind_that_the_end_would_wait_for(
    tmp_path: Path, wait: Callable[[GuardedProcess], int | None]
) -> None:
    def ask(_number: int, _frame: FrameType | None) -> None:
        raise _Asked

    process = GuardedProcess(SLEEP, output=tmp_path / "out")
    popen: Any = process._guard
    real = popen._waitpid_lock
    before = signal.signal(signal.SIGTERM, ask)
    try:
        popen._waitpid_lock = SignalledLock(real)
        with pytest.raises(_Asked):
            wait(process)
    finally:
        signal.signal(signal.SIGTERM, before)
        popen._waitpid_lock = real
        is_left = real.acquire(blocking=False)
        real.release()
        process.stop()

    assert is_left, "the next wait would never end"
