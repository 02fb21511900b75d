"""One broker of the cluster under test, Ottla's or Apache's, as a process that can be hurt."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

from chaos.disks import BrokerDisk
from chaos.network import Place
from support.processes.apache import LOG4J
from support.processes.java_process import JavaProcess, java_command

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)


class Broker:
    """A broker with an address, a disk and a log file of its own."""

    def __init__(
        self,
        number: int,
        kind: str,
        place: Place,
        port: int,
        directory: Path,
        settings: Mapping[str, object],
        guards: Random,
    ) -> None:
        """``guards`` draws for each life whether a guard watches it."""
        self.number = number
        self.kind = kind
        self.place = place
        self.port = port
        self.directory = directory
        self.disk = BrokerDisk(directory / "logs")
        self.log = directory / "broker.log"
        self.is_paused = False
        self.may_end = False
        """Whether a fault is on that lets a broker end by itself (a full disk)."""
        self.lives = 0
        self._settings: dict[str, object] = {
            "broker.id": number,
            "listeners": f"PLAINTEXT://{place.address}:{port}",
            "log.dirs": self.disk.directory,
            **settings,
        }
        self._guards = guards
        self._process: JavaProcess | None = None

    @property
    def address(self) -> str:
        return f"{self.place.address}:{self.port}"

    @property
    def name(self) -> str:
        return f"Apache broker {self.number}" if self.kind == "apache" else f"broker {self.number}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was started"
        return self._process.pid

    def launch(self) -> None:
        """Start the process, and do not wait for it."""
        if self.is_running:
            return
        file = self.directory / "server.properties"
        settings = {**self._settings, "ottla.guard.enable": self._guards.choice(("true", "false"))}
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.lives += 1
        self.is_paused = False
        self._process = JavaProcess([*self.place.prefix, *self._command(file)], self.log)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        if self.is_running and self._process is not None:
            self.is_paused = True
            self._process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self.is_running and self._process is not None:
            self.is_paused = False
            self._process.resume()

    def shut_down(self) -> int:
        """A controlled shutdown, to its end; the exit code."""
        return 0 if self._process is None else self._process.terminate()

    def tracebacks(self) -> int:
        """How many exceptions its log tells of that nobody expected (Ottla's alone)."""
        if self.kind != "ottla" or not self.log.exists():
            return 0
        return len(_TRACEBACK.findall(self.log.read_text(encoding="utf-8", errors="replace")))

    def last_words(self) -> str:
        lines = (
            self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        )
        return lines[-1] if lines else "nothing"

    def _command(self, file: Path) -> list[str]:
        if self.kind == "ottla":
            return [sys.executable, "-m", "ottla.server", str(file)]
        if self.kind == "apache":
            log4j = self.directory / "log4j.properties"
            log4j.write_text(LOG4J.format(level="INFO") + "log4j.appender.out.Target=System.out\n")
            flags = (f"-Dlog4j.configuration=file:{log4j}",)
            return java_command("kafka.Kafka", str(file), heap="320m", flags=flags)
        return [sys.executable, "-m", "chaos.planted", self.kind, str(file)]
