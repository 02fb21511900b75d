"""A word to whoever sits at a terminal while a command waits; programs hear the outcome alone."""

import sys
from contextlib import suppress

import typer

PATIENCE_S = 2.0
"""So long nobody wonders."""


def tell_of_waiting(line: str) -> None:
    """Say what is waited for, on standard error, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        with suppress(OSError):
            typer.echo(line, err=True)
