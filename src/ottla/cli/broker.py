"""``ottla broker``: one broker, from a file with Kafka's own property names."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def broker(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="server.properties: Kafka's names, Kafka's format.")
    ],
) -> None:
    """Run one broker until SIGTERM or Ctrl-C; then it hands its leaderships over and stops cleanly.

    Example: `ottla broker server.properties`.
    """
    import os
    import sys

    # A fresh interpreter in the same process: the broker's memory shall not hold the command line's.
    flags = ["-O"] if sys.flags.optimize else []
    os.execv(sys.executable, [sys.executable, "-P", *flags, "-m", "ottla.server", str(file)])
