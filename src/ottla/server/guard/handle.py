"""The broker's side of its guard: starts it, tells it of every session, sends it away at an orderly end."""

import asyncio
import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.connect_string import Ensemble, Host

log = logging.getLogger(__name__)

WATCHER = Path(__file__).with_name("watcher.py")
START_AGAIN_SECONDS = 1.0
LEAVE_SECONDS_MAX = 1.0


class GuardHandle:
    """One guard at a time; when it ends before its broker, another one is started."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ensemble: Ensemble) -> None:
        self._loop = loop
        self._where = [ensemble.chroot, *(_address(host) for host in ensemble.hosts)]
        self._process: subprocess.Popen[bytes] | None = None
        self._descriptor: int | None = None
        self._last = b""
        self._is_dismissed = False

    def start(self) -> None:
        """Start the process; without it a dead broker is noticed at the end of its session's time-out."""
        if self._is_dismissed:
            return
        command = [sys.executable, "-I", "-S", str(WATCHER), str(os.getpid()), *self._where]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd="/", start_new_session=True
            )
        except OSError as error:
            self._miss(error.strerror or str(error))
            return
        assert self._process.stdin is not None, "it was asked for"
        os.set_blocking(self._process.stdin.fileno(), False)  # A frozen guard must not freeze its broker.
        self._watch(self._process.pid)
        self._tell(self._last)
        log.info("a guard watches this broker process=%d", self._process.pid)

    def hand_over(self, session: ZooKeeperClient, broker_id: int, epoch: int) -> None:
        """This is the broker's session now, and in it the broker is registered under this epoch."""
        what = f"{session.session_id} {session.session_timeout_ms} {session.session_password.hex()}"
        self._last = f"{what} {broker_id} {epoch} {_address(session.server)}\n".encode()
        self._tell(self._last)

    def dismiss(self) -> None:
        """The broker has ended its session itself, as far as it could."""
        self._is_dismissed = True
        self._tell(b"done\n")
        self._forget()

    def _tell(self, line: bytes) -> None:
        if line and self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # It has ended (its descriptor tells so, too), or reads nothing.
                os.write(self._process.stdin.fileno(), line)

    # ---- a guard that ends first

    def _watch(self, pid: int) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                self._descriptor = os.pidfd_open(pid)
                self._loop.add_reader(self._descriptor, self._ended)

    def _ended(self) -> None:
        self._forget()
        self._miss("it ended")

    def _miss(self, reason: str) -> None:
        log.warning(
            "the broker has no guard, a death would be noticed after the session time-out reason=%s", reason
        )
        self._loop.call_later(START_AGAIN_SECONDS, self.start)

    def _forget(self) -> None:
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(LEAVE_SECONDS_MAX)


def _address(host: Host) -> str:
    return f"{host.name}:{host.port}"
