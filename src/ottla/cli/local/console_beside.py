"""``ottla up --console``: the web console beside a cluster, in a process of its own."""

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ottla.cli.inspect.console import DEFAULT_PORT, missing_packages
from ottla.cli.local.output import tell
from ottla.launch.ports import LOOPBACK
from ottla.launch.processes import ALONE, GuardedProcess
from ottla.launch.refusal import LaunchRefused

LOG_NAME = "console.log"
TOKEN_NAME = "console.token"
ADDRESS_NAME = "console.address"
"""Where it is reached while it runs, token included; for its owner alone."""
MARK = "console: "


def start_console(bootstrap_servers: str, data_dir: Path) -> "ConsoleBeside | None":
    """Start it; if its packages are missing, say so and return None."""
    if missing := missing_packages():
        tell(f"{MARK}not shown: {', '.join(missing)} not installed; pip install 'ottla[console]'")
        return None
    try:
        return ConsoleBeside(bootstrap_servers, data_dir)
    except (OSError, LaunchRefused) as refused:
        tell(f"{MARK}not shown: {refused}")
        return None


class ConsoleBeside:
    """``ottla console`` under a guard; its address is kept in a file, from which it is told."""

    def __init__(self, bootstrap_servers: str, data_dir: Path) -> None:
        from ottla.console.guard.token import Token, kept_secret

        token_file = data_dir / TOKEN_NAME
        secret = kept_secret(token_file)
        self._data_dir, self._log = data_dir, data_dir / LOG_NAME
        self._is_over = False
        with listening_socket() as listening:  # From now on whoever connects waits until the console runs.
            token = Token(secret, listening.getsockname()[1])
            command = [sys.executable, *ALONE, "-m", "ottla.cli.main", "console"]
            command += ["--bootstrap-server", bootstrap_servers, "--token-file", str(token_file)]
            command += ["--listening", str(listening.fileno())]
            self._process = GuardedProcess(command, output=self._log, held=[listening.fileno()])
        made = os.open(data_dir / ADDRESS_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w", encoding="ascii") as opened:
            opened.write(token.address + "\n")

    def tell_news(self) -> None:
        """That it has ended, and why: nobody else would notice."""
        if self._is_over or (code := self._process.exit_code()) is None:
            return
        self._is_over = True
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        why = lines[-1].removeprefix("ottla: ") if lines else "it gave no reason"
        tell(f"{MARK}ended with exit code {code}: {why}; the cluster goes on running")
        self.stop()

    def stop(self) -> None:
        """End it."""
        self._process.stop()
        forget_address(self._data_dir)


def address_here(data_dir: Path) -> str | None:
    """Where the console of the cluster on a directory is reached, if one runs and is ours to open."""
    try:
        return (data_dir / ADDRESS_NAME).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def forget_address(data_dir: Path) -> None:
    """The console of an earlier cluster is gone."""
    with suppress(OSError):
        (data_dir / ADDRESS_NAME).unlink()


def listening_socket() -> socket.socket:
    """On the usual port, or where that is taken on a free one."""
    try:
        return socket.create_server((LOOPBACK, DEFAULT_PORT))
    except OSError:
        return socket.create_server((LOOPBACK, 0))
