"""``ottla cluster-id``: Kafka's ``kafka-cluster cluster-id``."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    Output,
    OutputOption,
)

app = typer.Typer(add_completion=False)


@app.command()
def cluster_id(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "--command-config",
            metavar="FILE",
            help="A file with settings of the client.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the id of the cluster.

    Example: `ottla cluster-id --bootstrap-server 127.0.0.1:9092`.
    """
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.cluster import describe_cluster

    with connected(bootstrap_server, command_config) as client:
        number = client.run(describe_cluster).cluster_id
    if output is not Output.TABLE:
        print_rows([{"cluster_id": number}], output)
    else:
        typer.echo(f"Cluster ID: {number}")
