"""``ottla`` commands as a user types them, in processes of their own or (sooner done) in this one."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from ottla.cli.main import main

SECONDS_MAX = 180


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str
    raw: bytes

    @property
    def lines(self) -> list[str]:
        """What it printed, without empty lines and blanks at the ends of lines."""
        return [line.rstrip() for line in self.stdout.splitlines() if line.strip()]


Run = Callable[..., Ran]


def ottla_command(*args: str) -> list[str]:
    """The words that start ``ottla``."""
    return [sys.executable, "-m", "ottla.cli.main", *args]


def run_command(*args: str, stdin: bytes = b"") -> Ran:
    """Run ``ottla``; a traceback fails the test."""
    done = subprocess.run(
        ottla_command(*args), input=stdin, capture_output=True, timeout=SECONDS_MAX, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    text = done.stdout.decode(errors="replace")
    return Ran(done.returncode, text, done.stderr.decode(), done.stdout)


def run_here(*args: str) -> Ran:
    """Run ``ottla`` in this process."""
    raw = io.BytesIO()
    stdout = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    stderr = io.StringIO()
    code = 0
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            main(list(args))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    printed = raw.getvalue()
    return Ran(code, printed.decode(errors="replace"), stderr.getvalue(), printed)
