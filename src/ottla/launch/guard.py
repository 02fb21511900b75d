"""Runs one command and takes it down when the process that asked for it is gone.

A script of its own, started by ``processes.py`` as ``python -I -S guard.py``: it stands between parent and
child, because only a process can outlive a parent that was killed with SIGKILL. Three ties hold it:

- the parent's process descriptor (Linux): readable once the parent has ended, however it ended;
- standard input: a pipe whose other end the parent holds; when it closes, the child is stopped;
- the child dies with the guard (Linux, ``PR_SET_PDEATHSIG``), so that killing the guard leaves no orphan.

When the child has ended, what it had started and left behind in its process group is told to end (SIGTERM).

Arguments: status descriptor, grace in seconds, the parent's process id, the command. The child's process id,
or why it did not start, is written to the status descriptor. The exit code is the child's, or 128 + signal.
"""

import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_LOOK_AGAIN_S = 0.5
_STDIN = 0
_COMMAND_NOT_STARTED = 127


class _StopAsked(BaseException):
    """SIGTERM reached the guard itself."""


def _on_sigterm(_number: int, _frame: object) -> None:
    raise _StopAsked


def _start(command: list[str]) -> tuple[int, str]:
    """Fork and become the command; returns the child's process id and, where that failed, why."""
    guard = os.getpid()
    told, tell = os.pipe()  # a successful exec closes it, so its end without data means success
    child = os.fork()
    if child:
        os.close(tell)
        with os.fdopen(told, encoding="utf-8") as reader:
            return child, reader.read()
    try:
        become_child(guard)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(tell, f"{error.strerror}".encode())
    finally:
        os._exit(_COMMAND_NOT_STARTED)


def pid_descriptor(pid: int) -> int | None:
    """Readable once the process has ended; None where the system has none."""
    try:
        return os.pidfd_open(pid) if sys.platform == "linux" else None
    except OSError:
        return None


def _wait_for_end(child: int, lifeline: int, parent: int | None, own_parent: int | None) -> int | None:
    """Wait until child or parent has ended, or the pipe; the child's exit status where it was the child."""
    watched = [descriptor for descriptor in (pid_descriptor(child), parent) if descriptor is not None]
    while True:
        ready, _, _ = select.select([lifeline, *watched], [], [], _LOOK_AGAIN_S)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if parent in ready or own_parent not in (None, os.getppid()):
            return None
        if lifeline in ready and not os.read(lifeline, 64):
            return None


def _take_down(child: int, grace_s: float) -> int:
    """SIGTERM, then SIGKILL when the grace has passed."""
    os.kill(child, signal.SIGTERM)
    os.kill(child, signal.SIGCONT)
    give_up = time.monotonic() + grace_s
    while time.monotonic() < give_up:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def stand_guard(
    child: int, lifeline: int, parent: int | None, grace_s: float, own_parent: int | None = None
) -> int:
    """Guard a child until it, the parent (its descriptor) or the pipe ends; the child's exit code."""
    try:
        signal.signal(signal.SIGTERM, _on_sigterm)
        exit_status = _wait_for_end(child, lifeline, parent, own_parent)
    except _StopAsked:
        exit_status = None
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if exit_status is None:
        exit_status = _take_down(child, grace_s)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)  # Processes that the command started and left behind.
    code = os.waitstatus_to_exitcode(exit_status)
    return code if code >= 0 else 128 - code


def become_child(guard: int) -> None:
    """In the new child: usual signals, no input, and an end with its guard."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(_COMMAND_NOT_STARTED)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def main(arguments: list[str]) -> int:
    """Guard one command until it, the parent or the pipe ends."""
    status, grace_s, parent, command = (
        int(arguments[0]),
        float(arguments[1]),
        int(arguments[2]),
        arguments[3:],
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if os.getppid() != parent:
        return _COMMAND_NOT_STARTED
    os.set_inheritable(status, False)
    child, failure = _start(command)
    os.write(status, (f"failed {failure}\n" if failure else f"pid {child}\n").encode())
    os.close(status)
    return stand_guard(child, _STDIN, pid_descriptor(parent), grace_s, own_parent=parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
