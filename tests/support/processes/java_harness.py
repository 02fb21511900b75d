"""Long-lived Java oracles: one JVM per Java source and test session, asked through a pipe.

A source ``tests/support/java/<Name>.java`` holds a class ``<Name> implements Harness.Service``.
Both directions speak frames of an int32 length: to Java ``method name, NUL, payload``; back one status byte
and the answer or the error.
"""

from __future__ import annotations

import atexit
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO

from support.processes.java_process import dies_with_its_parent, java_command
from support.processes.lab import compiled

ANSWERED, FAILED = 0, 1


class JavaError(Exception):
    """What the Java side threw: its class name, a colon, its message."""


class JavaHarness:
    """The Python end of one oracle."""

    def __init__(self, source: str, heap: str = "256m", jars: Path | None = None) -> None:
        self._source = source
        self._process = subprocess.Popen(
            java_command("Harness", source, heap=heap, classes=compiled(source), jars=jars),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.__stderr__,
            preexec_fn=dies_with_its_parent,
            start_new_session=True,
        )

    def call(self, method: str, payload: bytes | bytearray | memoryview = b"") -> bytes:
        """Ask the service; what it throws arrives as JavaError."""
        to_java, from_java = self._pipes()
        name = method.encode() + b"\0"
        to_java.write(struct.pack(">i", len(name) + len(payload)) + name)
        to_java.write(payload)
        to_java.flush()
        size = struct.unpack(">i", self._read(from_java, 4))[0]
        answer = self._read(from_java, size)
        if answer[0] == FAILED:
            raise JavaError(answer[1:].decode())
        return answer[1:]

    def call_within(self, seconds_max: float, method: str, payload: bytes) -> bytes:
        """The same, of a service that may hang: a JVM that has not answered in time is ended."""
        late = Timer(seconds_max, self._process.kill)
        late.start()
        try:
            return self.call(method, payload)
        finally:
            late.cancel()

    def call_text(self, method: str, payload: bytes | bytearray | memoryview = b"") -> str:
        """Ask for an answer that is UTF-8 text."""
        return self.call(method, payload).decode()

    def close(self) -> None:
        """End the JVM."""
        to_java, from_java = self._pipes()
        to_java.close()
        self._process.wait(10)
        from_java.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None, "the harness is started with pipes"
        assert self._process.stdout is not None, "the harness is started with pipes"
        return self._process.stdin, self._process.stdout

    def _read(self, pipe: IO[bytes], size: int) -> bytes:
        answer = pipe.read(size)
        if len(answer) != size:
            raise JavaError(f"the JVM of {self._source} ended with exit code {self._process.wait(10)}")
        return answer


@cache
def java_harness(source: str, jars: Path | None = None) -> JavaHarness:
    """The oracle of ``tests/support/java/<source>.java``: started on first use, kept to the end."""
    harness = JavaHarness(source, jars=jars)
    atexit.register(harness.close)
    return harness
