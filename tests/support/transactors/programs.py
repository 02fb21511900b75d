"""Transactional producers as programs: one of each kind of client, built once into the lab directory.

A program takes settings as ``name=value`` and obeys commands on its standard input, a line each. It answers
each with a line: ``done``, ``found ...``, or ``refused ...`` with what the client raised.

=======================================  =====================================================
``init``                                 take the transactional id over
``begin``, ``commit``, ``abort``         a transaction
``send TOPIC PARTITION VALUE``           a record, acknowledged
``offsets GROUP TOPIC PARTITION OFFSET`` a group's offset, with the transaction
``end TOPIC ISOLATION``                  ListOffsets: the end of partition 0
``read TOPIC ISOLATION``                 partition 0 up to the record ``last``; ``committed`` or not
=======================================  =====================================================
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue

from support.members.building import go_program, java_program, node_program
from support.members.programs import newest_java_client
from support.processes.java_process import dies_with_its_parent
from support.processes.lab import kafka_jars

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent.parent
ANSWER_SECONDS_MAX = 120


def _java(jars: Callable[[], Path]) -> list[str]:
    return java_program(HERE / "java" / "Transactor.java", newest_java_client(), jars())


def _python(name: str) -> list[str]:
    return [sys.executable, "-m", f"support.transactors.{name}"]


KINDS: dict[str, Callable[[], list[str]]] = {
    "ottla": lambda: _python("with_ottla"),
    "librdkafka": lambda: _python("with_librdkafka"),
    "aiokafka": lambda: _python("with_aiokafka"),
    "kafka-python": lambda: _python("with_kafka_python"),
    "java-3.9": lambda: _java(kafka_jars),
    "java-4": lambda: _java(newest_java_client),
    "franz-go": lambda: go_program(HERE / "franz_go", "transactor.go"),
    "sarama": lambda: go_program(HERE / "sarama", "transactor.go"),
    "kafkajs": lambda: node_program(HERE / "kafkajs", "transactor.js"),
}

WITHOUT_ENDS = frozenset({"kafkajs"})
"""Kinds that cannot ask where committed records end."""


class Refused(Exception):
    """What the client raised."""


class Transactor:
    """One program."""

    def __init__(
        self, kind: str, bootstrap_servers: str, transactional_id: str, home: Path, timeout_ms: int = 60_000
    ) -> None:
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
        }
        self._errors = home / f"{transactional_id}.stderr"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*KINDS[kind](), *(f"{name}={value}" for name, value in settings.items())],
                cwd=TESTS,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=dies_with_its_parent,
                start_new_session=True,
            )
        self._answers: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "started with a pipe"
        for line in self._process.stdout:
            self._answers.put(line.strip())
        self._answers.put("gone")

    def does(self, *words: object) -> str:
        """One command; what it found. ``Refused`` says what the client raised."""
        command = " ".join(map(str, words))
        assert self._process.stdin is not None, "started with a pipe"
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        try:
            outcome, _, rest = self._answers.get(timeout=ANSWER_SECONDS_MAX).partition(" ")
        except Empty:
            outcome, rest = "silent", ""
        if outcome == "refused":
            raise Refused(f"{command}: {rest}")
        assert outcome in ("done", "found"), (
            f"{command}: {outcome} {rest}\n{self._errors.read_text()[-3000:]}"
        )
        return rest

    def transacts(self, *commands: str, end: str = "commit") -> None:
        """A whole transaction."""
        for command in ("begin", *commands, end):
            self.does(command)

    def close(self) -> None:
        """End the program, whatever it does."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
