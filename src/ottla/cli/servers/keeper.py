"""``ottla keeper``: the built-in keeper, one ZooKeeper server without Java, for brokers on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import read_settings
from ottla.cli.shared.refusal import CommandRefused

app = typer.Typer(add_completion=False)

OPTIONS = {
    "clientPortAddress": "--host",
    "tickTime": "--tick-ms",
    "minSessionTimeout": "--session-ms-min",
    "maxSessionTimeout": "--session-ms-max",
    "maxClientCnxns": "--connections-per-address",
    "4lw.commands.whitelist": "--words",
    "DigestAuthenticationProvider.superDigest": "--super-digest",
}
"""What a file may set, by the names of Apache's server, and what the process calls it."""
NUMBERS = ("tickTime", "minSessionTimeout", "maxSessionTimeout", "maxClientCnxns")


@app.command()
def keeper(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="zookeeper.properties: dataDir, clientPort, tickTime, maxClientCnxns, …"
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where its data is kept: else dataDir of the file, else ottla-data/zookeeper."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Where clients connect, on 127.0.0.1: else clientPort, else 2181. 0 takes a free port.",
        ),
    ] = None,
    daemon: Annotated[
        bool,
        typer.Option(
            "--daemon",
            "-daemon",
            help="In the background; its log is keeper.out in $LOG_DIR, or in logs if that is not set.",
        ),
    ] = False,
) -> None:
    """Run the built-in keeper, one ZooKeeper server (loopback only), until SIGTERM or Ctrl-C; its data stays.

    Example: `ottla keeper --port 2181`, then brokers with `zookeeper.connect=127.0.0.1:2181`.
    """
    words = ["-m", "ottla.server.keeper", *_words(read_settings(file), data_dir, port)]
    if daemon:
        from ottla.cli.local.daemon import start_daemon

        start_daemon(words, "keeper.out")
        return

    import os
    import sys

    # A fresh interpreter in the same process, without the memory of the command line.
    os.execv(sys.executable, [sys.executable, "-P", *words])


def _words(settings: dict[str, str], data_dir: Path | None, port: int | None) -> list[str]:
    """The command line of the process; a setting that asks for more than one server does is refused."""
    place = str(data_dir or settings.pop("dataDir", "ottla-data/zookeeper"))
    at = settings.pop("clientPort", "2181") if port is None else str(port)
    if not at.isdecimal() or int(at) > 65_535:
        raise CommandRefused(f"clientPort={at} is not a port")
    words = ["--data-dir", place, "--port", at]
    for name, value in settings.items():
        if name.startswith("server."):
            raise CommandRefused(f"{name}: the built-in keeper is one server; for an ensemble use Apache's")
        if name in NUMBERS and not value.isdecimal():
            raise CommandRefused(f"{name}={value} is not a number")
        if name in OPTIONS:
            words.append(f"{OPTIONS[name]}={value}")
        elif name not in ("dataDir", "clientPort"):
            typer.echo(f"{name} means nothing to the built-in keeper and is ignored", err=True)
    return words
