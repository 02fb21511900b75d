"""Our side of the warmed process: start it early, ask it for brokers, and stop it."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from ottla.launch.processes import ALONE, KILLED, ChildProcess, await_end_of, exit_code_of
from ottla.launch.refusal import LaunchRefused

IS_QUICKER = sys.platform == "linux"
"""Elsewhere a fork of a process with the system's libraries loaded is not safe, and we have not tried it."""
START_LIMIT_S = 60.0
_TITLE_ROOM = " " * 240


class WarmProcess:
    """Imports the broker as soon as it is started; the first ``fork`` waits for that."""

    def __init__(self, output: Path) -> None:
        """Start it, and do not wait for it; ``output`` gets what it prints when it fails."""
        self._output = output
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, output.open("wb") as printed:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, *ALONE, "-m", "ottla.launch.forking.warm"),
                    *(str(theirs.fileno()), str(os.getpid()), _TITLE_ROOM),
                ],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return exit_code_of(self._process) is None

    def fork(self, arguments: list[str], *, output: Path, grace_s: float) -> "ForkedProcess":
        """A broker with these arguments; ``output`` gets what it prints."""
        request = json.dumps({"arguments": arguments, "grace_s": grace_s}).encode()
        lifeline, theirs = socket.socketpair()
        try:
            with theirs, output.open("wb") as printed:
                descriptors = [printed.fileno(), theirs.fileno()]
                socket.send_fds(self._control, [request], descriptors)
            return ForkedProcess(lifeline, output)
        except (OSError, EOFError) as error:
            lifeline.close()
            raise LaunchRefused(f"cannot start a broker: {self._why_not(error)}") from None

    def stop(self) -> None:
        """End it, even if it is frozen: it keeps nothing. The brokers that it forked go on."""
        self._control.close()
        if self.is_running:
            os.kill(self._process.pid, signal.SIGKILL)
        await_end_of(self._process)

    def _why_not(self, error: Exception) -> str:
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
        last = lines[-1] if lines else error
        return f"the process that forks brokers has ended ({last}); its output is {self._output}"


class ForkedProcess(ChildProcess):
    """A broker that was forked. Its guard is not our child, so it tells us over a socket how it went."""

    def __init__(self, lifeline: socket.socket, output: Path) -> None:
        self.output = output
        self._lifeline = lifeline
        self._lock = threading.RLock()
        self._told = b""
        self._code: int | None = None
        give_up = time.monotonic() + START_LIMIT_S
        while b"\n" not in self._told:
            if not self._listen(give_up - time.monotonic()):
                raise EOFError
        word, self._told = self._told.split(b"\n", 1)
        self.pid = int(word.removeprefix(b"pid "))

    def exit_code(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        give_up = None if timeout_s is None else time.monotonic() + timeout_s
        while self._code is None:
            if not self._listen(None if give_up is None else give_up - time.monotonic()):
                break
        return self._code

    def let_go(self) -> None:
        with suppress(OSError):  # it has ended
            self._lifeline.shutdown(socket.SHUT_WR)

    def _listen(self, timeout_s: float | None) -> bool:
        """Wait for the guard's next words and take them; False when it told nothing new in time."""
        waiting = select.poll()
        with suppress(ValueError):  # another thread has stopped it meanwhile
            waiting.register(self._lifeline, select.POLLIN)
            waiting.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)
        with self._lock:
            if self._code is not None:
                return False
            try:
                news = self._lifeline.recv(64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                news = b""
            self._told += news
            word, _, code = self._told.partition(b" ")
            if word == b"exit" and code.endswith(b"\n"):
                self._code = int(code)
            elif not news:
                self._code = KILLED  # The guard was killed, and took the broker with it.
            if self._code is not None:
                self._lifeline.close()
            return bool(news)
