"""``-daemon``, as Kafka's start scripts have it: the same command in the background."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from ottla.cli.shared.refusal import CommandRefused
from ottla.launch.processes import ALONE


def start_daemon(words: list[str], log_name: str) -> None:
    """Start Python with these words in a session of its own; it prints into ``$LOG_DIR``, or ``logs``."""
    log = Path(os.environ.get("LOG_DIR") or "logs") / log_name
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    except OSError as error:
        raise CommandRefused(f"{log} cannot be written: {error.strerror or error}; set LOG_DIR") from None
    with output:
        process = subprocess.Popen(
            [sys.executable, *ALONE, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process.returncode = 0  # Nobody waits for it any more.
    typer.echo(f"running as process {process.pid}; its log is {log}")
