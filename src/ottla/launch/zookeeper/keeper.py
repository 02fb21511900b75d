"""The built-in keeper on this machine: a ZooKeeper server in Python, on loopback, as a context manager."""

import os
import signal
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.launch.data_dir import lock_data_dir
from ottla.launch.ports import LOOPBACK, free_ports, require_free
from ottla.launch.processes import ALONE, GuardedProcess
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper_files import LOCK_NAME
from ottla.launch.zookeeper_probe import accepts_sessions, four_letter_word

START_LIMIT_S = 60.0
LOG_NAME = "keeper.log"
_ASK_S = 1.0
_LOOK_AGAIN_S = 0.005
_PORT_TRIES = 5

# What Ottla sets at Apache's server, too: see ``embedded_zookeeper.py``.
_OPTIONS = (
    *("--tick-ms", "500", "--session-ms-min", "1000", "--session-ms-max", "60000"),
    *("--connections-per-address", "0", "--words", "*"),
)


class EmbeddedKeeper:
    """One keeper. Its data stays in ``data_dir``; it ends with the process that started it."""

    def __init__(self, data_dir: Path, *, port: int = 0, sync: bool = True) -> None:
        """Describe it; ``start`` or ``with`` starts it.

        ``port`` 0 takes a free one. ``sync=False`` leaves writing to the operating system: fast, for tests.
        """
        self.data_dir = data_dir.absolute()
        self.port = port
        self._any_port = port == 0
        self._sync = sync
        self._process: GuardedProcess | None = None

    @property
    def connect(self) -> str:
        """The connect string: ``host:port``."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        """What the keeper printed since it was started."""
        return self.data_dir / LOG_NAME

    @property
    def pid(self) -> int:
        return self._running().pid

    def __str__(self) -> str:
        return "the built-in keeper (one ZooKeeper server, no ensemble)"

    def start(self) -> Self:
        """Start it and wait until it grants a session."""
        self.launch()
        self.await_session()
        return self

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        self.stop()
        os.close(lock_data_dir(self.data_dir, LOCK_NAME))  # Only a look: the keeper takes it.
        if self.port:
            require_free(self.port)
        else:
            self.port = free_ports(1)[0]
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.1"))
        place = ("--data-dir", str(self.data_dir), "--port", str(self.port))
        how = () if self._sync else ("--no-sync",)
        command = [sys.executable, *ALONE, "-m", "ottla.server.keeper", *place, *_OPTIONS, *how]
        self._process = GuardedProcess(command, output=self.log)

    def await_session(self, timeout_s: float = START_LIMIT_S) -> None:
        """Wait until it grants a session; explain why when it does not."""
        give_up = time.monotonic() + timeout_s
        tries = 1
        while not accepts_sessions(LOOPBACK, self.port, _ASK_S):
            code = self._running().exit_code()
            if code is not None and self._any_port and tries < _PORT_TRIES and not _is_free(self.port):
                tries += 1
                self.port = 0
                self.launch()
            elif code is not None:
                self.stop()
                raise LaunchRefused(f"the keeper ended with exit code {code} while starting: {self._why()}")
            elif time.monotonic() > give_up:
                self.stop()
                raise LaunchRefused(
                    f"the keeper granted no session within {timeout_s:.0f} s; its log is {self.log}"
                )
            time.sleep(_LOOK_AGAIN_S)

    def stop(self) -> None:
        """Stop it; all that it acknowledged is on disk."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing is answered."""
        self._running().freeze()

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        self._running().send(signal.SIGCONT)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until it has ended; its exit code, or None when that took longer than the time-out."""
        return self._running().wait(timeout_s)

    def mode(self) -> str:
        """``standalone``; empty while it does not serve."""
        for line in four_letter_word(LOOPBACK, self.port, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def _running(self) -> GuardedProcess:
        assert self._process is not None, "the keeper was started"
        return self._process

    def _why(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"{lines[-1] if lines else 'it gave no reason'}; its log is {self.log}"

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _is_free(port: int) -> bool:
    try:
        require_free(port)
    except LaunchRefused:
        return False
    return True
