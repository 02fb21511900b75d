"""``ottla up``: a whole cluster on this machine with one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ottla.launch.cluster import Cluster

app = typer.Typer(add_completion=False)

LOOK_S = 0.5


@app.command()
def up(
    brokers: Annotated[int, typer.Option(min=1, max=100, help="How many brokers.")] = 3,
    data_dir: Annotated[Path, typer.Option(help="Where all data is kept.")] = Path("ottla-data"),
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65_000, help="Where the first broker listens; the others follow. 0: free ports."
        ),
    ] = 9092,
    zookeeper_port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where ZooKeeper listens. 0: a free port.")
    ] = 0,
) -> None:
    """Start ZooKeeper and brokers on this machine (loopback only); Ctrl-C stops them cleanly, data stays."""
    import time

    from ottla.cli.signals import stop_once
    from ottla.launch.cluster import Cluster

    with stop_once() as stop:
        started = time.monotonic()
        cluster = Cluster(brokers, data_dir=data_dir, port=port, zookeeper_port=zookeeper_port)
        typer.echo(f"starting ZooKeeper {cluster.zookeeper.version} and {brokers} brokers")
        try:
            cluster.start()
            _show(cluster, time.monotonic() - started)
            _watch(cluster)
        finally:
            typer.echo("stopping")
            cluster.stop()
    if stop.asked:
        typer.echo(f"stopped; the data is in {cluster.data_dir}")


def _show(cluster: "Cluster", elapsed_s: float) -> None:
    typer.echo(f"ready after {elapsed_s:.1f} s")
    typer.echo(f"  bootstrap.servers  {cluster.bootstrap_servers}")
    typer.echo(f"  zookeeper.connect  {cluster.zookeeper.connect}")
    typer.echo(f"  data               {cluster.data_dir}")
    typer.echo("Ctrl-C stops it")


def _watch(cluster: "Cluster") -> None:
    """Tell who is controller, and who ended: nothing is restarted silently."""
    from ottla.launch.refusal import LaunchRefused

    told: set[int] = set()
    controller: int | None = None
    while True:
        now = cluster.controller
        if now is not None and now != controller:
            controller = now
            typer.echo(f"controller is broker {controller}")
        for broker in cluster.ended():
            if broker.broker_id not in told:
                told.add(broker.broker_id)
                typer.echo(broker.why_it_ended())
        if len(told) == len(cluster.brokers):
            raise LaunchRefused("all brokers have ended")
        if (code := cluster.zookeeper.wait(LOOK_S)) is not None:
            raise LaunchRefused(
                f"ZooKeeper ended by itself with exit code {code}; its log is {cluster.zookeeper.log}"
            )
