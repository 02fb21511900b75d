"""Prints the lines of a running cluster at the terminal that started it."""

from contextlib import suppress

import typer


def tell(line: str) -> None:
    """Print a line. A full disk or a closed terminal is ignored; a closed pipe raises and ends it."""
    try:
        typer.echo(line)
    except BrokenPipeError:
        raise
    except OSError:
        pass


def tell_at_the_end(line: str) -> None:
    """The same while everything is being stopped, which must go on whatever happens to the output."""
    with suppress(OSError):
        typer.echo(line)
