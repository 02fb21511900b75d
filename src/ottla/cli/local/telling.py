"""What a cluster that runs says to whoever started it."""

from contextlib import suppress

import typer


def tell(line: str) -> None:
    """Print a line. A full disk or a closed terminal is no reason to end; a reader who left is one."""
    try:
        typer.echo(line)
    except BrokenPipeError:
        raise
    except OSError:
        pass  # There is nobody to tell it to.


def tell_at_the_end(line: str) -> None:
    """The same while everything is being stopped: that must go on whoever listens."""
    with suppress(OSError):
        typer.echo(line)
