"""Child processes that never outlive the process that started them."""

import os
import select
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.launch.guard import pid_descriptor
from ottla.launch.refusal import LaunchRefused

GUARD = Path(__file__).with_name("guard.py")
GRACE_S = 5.0
FREEZE_LIMIT_S = 5.0
KILLED = 128 + signal.SIGKILL
_LOOK_AGAIN_S = 0.001
_WAIT_AGAIN_S = 0.05
_MAY_RAISE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ALONE = ("-P",)
"""Python does not look for modules in the current directory: a `random.py` there is not ours."""


def is_frozen(pid: int) -> bool:
    """Whether a signal has stopped every thread of a process (True where the system does not tell)."""
    if sys.platform != "linux":
        return True
    try:
        stats = [(task / "stat").read_bytes() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False  # a thread, or the process, ended meanwhile
    return all(stat.rpartition(b") ")[2].startswith((b"T", b"t")) for stat in stats)


def exit_code_of(process: "subprocess.Popen[bytes]") -> int | None:
    """As ``poll``. Its lock would stay taken for ever if a handler of ours raised between its two ends."""
    with _signals_later():
        return process.poll()


def await_end_of(process: "subprocess.Popen[bytes]", timeout_s: float | None = None) -> int | None:
    """The exit code as soon as it has ended; None when that took longer than the time-out."""
    give_up = None if timeout_s is None else time.monotonic() + timeout_s
    descriptor = pid_descriptor(process.pid) if process.returncode is None else None
    try:
        while (code := exit_code_of(process)) is None:
            left = None if give_up is None else give_up - time.monotonic()
            if left is not None and left <= 0:
                return None
            if descriptor is None:
                time.sleep(_WAIT_AGAIN_S if left is None else min(left, _WAIT_AGAIN_S))
            else:
                ended = select.poll()  # Not select: a large program may have thousands of descriptors.
                ended.register(descriptor, select.POLLIN)
                ended.poll(None if left is None else left * 1000)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return code


@contextmanager
def _signals_later() -> Iterator[None]:
    """Signals whose handlers may raise come when the block is left."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _MAY_RAISE)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ChildProcess(ABC):
    """A process that we started: it ends when told to, and when this process ends in whatever way.

    It runs in a session of its own, so that Ctrl-C in a terminal reaches this process alone, which then
    decides in which order to stop what it started.
    """

    pid: int
    output: Path

    @abstractmethod
    def exit_code(self) -> int | None:
        """Its exit code (128 + signal), or None while it runs."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until it has ended; None when that took longer than the time-out."""

    @abstractmethod
    def let_go(self) -> None:
        """Have its guard ask it to end (SIGTERM), and make it end when the grace has passed."""

    def stop(self) -> int:
        """The same, to the end; returns the exit code."""
        self.let_go()
        code = self.wait()
        assert code is not None, "whoever waits without a limit waits to the end"
        return code

    def kill(self) -> int:
        """End it as a crash would (SIGKILL)."""
        self.send(signal.SIGKILL)
        self.wait()
        return self.stop()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command itself, if it still runs."""
        if self.exit_code() is None:
            os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop it (SIGSTOP) and wait until it stands still, where the system tells: its threads
        stop one after the other, and one may still answer somebody."""
        self.send(signal.SIGSTOP)
        give_up = time.monotonic() + FREEZE_LIMIT_S
        while self.exit_code() is None and not is_frozen(self.pid) and time.monotonic() < give_up:
            time.sleep(_LOOK_AGAIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class GuardedProcess(ChildProcess):
    """Any command, under a guard."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        output: Path,
        environ: Mapping[str, str] | None = None,
        held: Sequence[int] = (),
        grace_s: float = GRACE_S,
    ) -> None:
        """Start it. ``output`` gets what it prints; it keeps the descriptors ``held`` open while it lives."""
        self.output = output
        status_read, status_write = os.pipe()
        try:
            with output.open("wb") as printed:
                self._guard = subprocess.Popen(
                    [
                        *(sys.executable, "-I", "-S", str(GUARD)),
                        *(str(status_write), str(grace_s), str(os.getpid())),
                        *map(str, command),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    env=None if environ is None else dict(environ),
                    pass_fds=(status_write, *held),
                    start_new_session=True,
                )
        finally:
            os.close(status_write)
        with os.fdopen(status_read, encoding="utf-8") as answers:
            word, _, rest = answers.readline().rstrip("\n").partition(" ")
        if word != "pid":
            self.stop()
            raise LaunchRefused(f"cannot start {command[0]}: {rest or 'its guard process ended'}")
        self.pid = int(rest)

    def exit_code(self) -> int | None:
        return exit_code_of(self._guard)

    def wait(self, timeout_s: float | None = None) -> int | None:
        return await_end_of(self._guard, timeout_s)

    def let_go(self) -> None:
        if self._guard.stdin is not None:
            self._guard.stdin.close()
