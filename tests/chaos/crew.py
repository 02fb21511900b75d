"""The workers of a run, as processes: started, given orders, paused, awaited."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from chaos.workers.common import Task
from support.processes.java_process import dies_with_its_parent

TESTS = Path(__file__).resolve().parents[1]


class Worker:
    """One worker process."""

    def __init__(self, task: Task) -> None:
        self.task = task
        paths = filter(None, [os.environ.get("PYTHONPATH")])
        with (task.directory / f"{task.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "chaos.workers", task.as_text()],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=dies_with_its_parent,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *paths])},
            )

    def stop(self) -> None:
        """Ask it to end."""
        self._order({"stop": True})

    def drain(self, ends: dict[int, int]) -> None:
        """Let it read on to these offsets, and end there."""
        self._order({"drain": ends})

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None when it did not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def say_where_it_is(self) -> None:
        """Its stack goes to its log."""
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _order(self, order: dict[str, object]) -> None:
        if self._process.stdin is not None and self._process.poll() is None:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
