"""``ottla describe``: one screen of the cluster."""

from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
)

app = typer.Typer(add_completion=False)


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    zookeeper: Annotated[
        str | None, typer.Option(metavar="HOST:PORT/CHROOT", help="Also show the controller's epoch.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Short for --output json.")] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show brokers, controller, leaders against preferred leaders, what is wrong, and groups with their lag.

    Example: `ottla describe`. A star marks the controller. As CSV it is the table of brokers.
    """
    import json

    from ottla.cli.local.state import DEFAULT_DATA_DIR, read_state
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows
    from ottla.cli.views.cluster_view import read_cluster

    if zookeeper is None and not bootstrap_server and (here := read_state(DEFAULT_DATA_DIR)) is not None:
        zookeeper = here.zookeeper
    epoch = None if zookeeper is None else _controller_epoch(zookeeper)
    with connected(bootstrap_server, command_config) as client:
        view = read_cluster(client, controller_epoch=epoch)
    if json_ or output is Output.JSON:
        typer.echo(json.dumps(view.as_json(), indent=2))
    elif output is Output.CSV:
        print_rows(view.as_json()["brokers"], output)
    else:
        typer.echo("\n".join(view.lines()))


def _controller_epoch(connect: str) -> int:
    from ottla.cli.shared.zookeeper import zookeeper_session
    from ottla.zookeeper.codec import decode_controller_epoch
    from ottla.zookeeper.paths import CONTROLLER_EPOCH

    with zookeeper_session(connect) as session:
        return decode_controller_epoch(session.get(CONTROLLER_EPOCH).data)
