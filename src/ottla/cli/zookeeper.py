"""``ottla zookeeper``: Apache ZooKeeper on this machine, for brokers on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.local.telling import tell_at_the_end

app = typer.Typer(add_completion=False)


@app.command()
def zookeeper(
    data_dir: Annotated[Path, typer.Option(help="Where its data is kept.")] = Path("ottla-data/zookeeper"),
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where clients connect, on 127.0.0.1; 0 takes a free port.")
    ] = 2181,
) -> None:
    """Start Apache ZooKeeper on this machine (loopback only); Ctrl-C stops it, its data stays.

    Example: `ottla zookeeper --port 2181`, then brokers with `zookeeper.connect=127.0.0.1:2181`.
    """
    import time

    from ottla.cli.signals import stop_once
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from ottla.launch.java import find_java
    from ottla.launch.refusal import LaunchRefused

    with stop_once() as stop:
        started = time.monotonic()
        java = find_java()
        server = EmbeddedZooKeeper(data_dir, port=port, java=java)
        typer.echo(f"starting ZooKeeper {server.version} on Java {java.version} ({java.executable})")
        with server:
            elapsed_s = time.monotonic() - started
            typer.echo(f"ready on {server.connect} after {elapsed_s:.1f} s, data in {server.data_dir}")
            typer.echo("Ctrl-C stops it")
            code = server.wait()
    if not stop.asked:
        raise LaunchRefused(f"ZooKeeper ended by itself with exit code {code}; its log is {server.log}")
    tell_at_the_end("ZooKeeper stopped")
