"""The built-in keeper as a process, in a test's hand."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.launch.ports import free_ports
from ottla.launch.processes import ALONE, GuardedProcess

START_LIMIT_S = 30.0
LIKE_THE_EMBEDDED = (
    *("--tick-ms", "500", "--session-ms-min", "1000", "--session-ms-max", "60000"),
    *("--connections-per-address", "0", "--words", "*"),
)
"""What Ottla sets at Apache's server, too."""


class KeeperProcess:
    """One keeper; its data stays in ``data_dir``."""

    def __init__(self, data_dir: Path, *options: str, port: int = 0, sync: bool = False) -> None:
        self.data_dir = data_dir
        self.port = port or free_ports(1)[0]
        self._options = (*options, *(() if sync else ("--no-sync",)))
        self._process: GuardedProcess | None = None
        self.output = data_dir.with_name(f"{data_dir.name}.out")

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the keeper was started"
        return self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._process is not None, "the keeper was started"
        return self._process.exit_code()

    def start(self) -> Self:
        """Start it, and wait until it says that it listens."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        place = ("--data-dir", str(self.data_dir), "--port", str(self.port))
        command = [sys.executable, *ALONE, "-m", "ottla.server.keeper", *place, *self._options]
        self._process = GuardedProcess(command, output=self.output, environ=dict(os.environ))
        give_up = time.monotonic() + START_LIMIT_S
        while "listening on" not in (said := self.output.read_text(encoding="utf-8")):
            assert self._process.exit_code() is None, f"the keeper ended: {said}"
            assert time.monotonic() < give_up, f"the keeper does not listen: {said}"
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
