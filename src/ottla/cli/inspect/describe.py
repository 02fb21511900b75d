"""``ottla describe``: one screen of the cluster."""

from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    EpochFrom,
    Output,
    OutputOption,
)

app = typer.Typer(add_completion=False)


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    zookeeper: EpochFrom = None,
    json_: Annotated[bool, typer.Option("--json", help="Short for --output json.")] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show brokers, controller, leaders against preferred leaders, what is wrong, and groups with their lag.

    Example: `ottla describe`. A star marks the controller. As CSV it is the table of brokers.
    """
    import json

    from ottla.cli.inspect.controller_epoch import read_epoch, zookeeper_known
    from ottla.cli.inspect.look import look
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows

    connect = zookeeper_known(zookeeper, bootstrap_server)
    epoch = None if connect is None else read_epoch(connect)
    with connected(bootstrap_server, command_config) as client:
        view = look(client, controller_epoch=epoch)
    if json_ or output is Output.JSON:
        typer.echo(json.dumps(view.as_json(), indent=2))
    elif output is Output.CSV:
        print_rows(view.as_json()["brokers"], output)
    else:
        typer.echo("\n".join(view.lines()))
