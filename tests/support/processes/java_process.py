"""Java processes that tests start: small, quick to be up, and never outliving the test run."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

from ottla.launch.processes import is_frozen
from support.processes.lab import kafka_jars, require_command
from support.running.waiting import wait_until

PR_SET_PDEATHSIG = 1
STOP_SECONDS_MAX = 60
# One tier of compilation and the serial collector: a second of start instead of two, and no spare threads.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")

_libc = ctypes.CDLL(None)


def java_command(
    main_class: str,
    *args: str,
    heap: str = "256m",
    flags: tuple[str, ...] = (),
    classes: Path | None = None,
    jars: Path | None = None,
) -> list[str]:
    """The command line of a JVM with Apache Kafka's jars on its class path, or those of another release."""
    kafka = f"{jars or kafka_jars()}/*"
    class_path = kafka if classes is None else f"{classes}{os.pathsep}{kafka}"
    return [
        require_command("java"),
        f"-Xmx{heap}",
        *QUICK_START,
        *flags,
        "-cp",
        class_path,
        main_class,
        *args,
    ]


def dies_with_its_parent() -> None:
    """Ask the kernel, in the child, for SIGKILL when the process that started it is gone."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class JavaProcess:
    """A JVM in the background whose output goes to a file."""

    def __init__(self, command: list[str], output: Path) -> None:
        self.output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=dies_with_its_parent,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def exit_code(self, seconds_max: float = STOP_SECONDS_MAX) -> int:
        """Wait for the end of the process."""
        return self._process.wait(seconds_max)

    def terminate(self) -> int:
        """SIGTERM, and SIGKILL if that is not obeyed in time; the exit code."""
        if self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                return self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        if self.is_running:
            self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: alive for the kernel, silent for everyone else, with each of its threads."""
        self._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: not self.is_running or is_frozen(self.pid), "it stands still", every=0.001)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)
