"""Says at a terminal what a command waits for; programs get the outcome alone."""

import sys
from contextlib import suppress

import typer

PATIENCE_S = 2.0
"""How long a command may be silent."""


def tell_of_waiting(line: str) -> None:
    """Say what is waited for, on standard error, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        with suppress(OSError):
            typer.echo(line, err=True)
