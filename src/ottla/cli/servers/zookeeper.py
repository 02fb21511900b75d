"""``ottla zookeeper``: Apache ZooKeeper on this machine, for brokers on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.local.output import tell_at_the_end
from ottla.cli.shared.options import read_settings
from ottla.cli.shared.refusal import CommandRefused

app = typer.Typer(add_completion=False)


@app.command()
def zookeeper(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="zookeeper.properties: dataDir, clientPort.")
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
            help="In the background; its log is zookeeper.out in $LOG_DIR, or in logs if that is not set.",
        ),
    ] = False,
) -> None:
    """Start Apache ZooKeeper on this machine (loopback only); Ctrl-C stops it, its data stays.

    Example: `ottla zookeeper --port 2181`, then brokers with `zookeeper.connect=127.0.0.1:2181`.
    """
    settings = read_settings(file)
    _require_one_on_loopback(settings)
    named = (settings.pop("dataDir", "ottla-data/zookeeper"), _port(settings.pop("clientPort", "2181")))
    place, at = data_dir or Path(named[0]), named[1] if port is None else port
    if daemon:
        from ottla.cli.local.daemon import start_daemon

        words = ["-m", "ottla.cli.main", "zookeeper", *([] if file is None else [str(file)])]
        start_daemon([*words, "--data-dir", str(place), "--port", str(at)], "zookeeper.out")
        return

    import time

    from ottla.cli.shared.signals import stop_once
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from ottla.launch.java import find_java
    from ottla.launch.refusal import LaunchRefused

    with stop_once() as stop:
        started = time.monotonic()
        java = find_java()
        server = EmbeddedZooKeeper(place, port=at, settings=settings, java=java)
        typer.echo(f"starting ZooKeeper {server.version} on Java {java.version} ({java.executable})")
        with server:
            elapsed_s = time.monotonic() - started
            typer.echo(f"ready on {server.connect} after {elapsed_s:.1f} s, data in {server.data_dir}")
            typer.echo("Ctrl-C stops it")
            code = server.wait()
    if not stop.asked:
        raise LaunchRefused(f"ZooKeeper ended by itself with exit code {code}; its log is {server.log}")
    tell_at_the_end("ZooKeeper stopped")


def _require_one_on_loopback(settings: dict[str, str]) -> None:
    """Refuse a file that asks for more than this command does."""
    address = settings.get("clientPortAddress", "127.0.0.1")
    if address not in ("127.0.0.1", "localhost"):
        raise CommandRefused(f"clientPortAddress={address}: `ottla zookeeper` listens on 127.0.0.1 alone")
    for name in settings:
        if name.startswith("server."):
            raise CommandRefused(f"{name}: `ottla zookeeper` is one server; for an ensemble use Apache's")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise CommandRefused(f"clientPort={text} is not a port")
    return int(text)
