"""``ottla broker``: one broker, from a file with Kafka's own property names."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import key_values

app = typer.Typer(add_completion=False)


@app.command()
def broker(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="server.properties: Kafka's names, Kafka's format.")
    ],
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting in place of the file's; may be repeated."),
    ] = None,
    daemon: Annotated[
        bool,
        typer.Option(
            "--daemon",
            "-daemon",
            help="In the background; its log is kafkaServer.out in $LOG_DIR, or in logs if that is not set.",
        ),
    ] = False,
) -> None:
    """Run one broker until SIGTERM or Ctrl-C; then it hands its leaderships over and stops cleanly.

    Example: `ottla broker server.properties --override broker.id=2`.
    """
    import os
    import sys

    given = key_values("--override", override or [])
    overrides = [word for name, value in given.items() for word in ("--override", f"{name}={value}")]
    # A fresh interpreter in the same process, without the memory of the command line.
    words = ["-O"] if sys.flags.optimize else []
    words += ["-m", "ottla.server", str(file), *overrides]
    if daemon:
        from ottla.cli.local.daemon import start_daemon

        start_daemon(words, "kafkaServer.out")
        return
    os.execv(sys.executable, [sys.executable, "-P", *words])
