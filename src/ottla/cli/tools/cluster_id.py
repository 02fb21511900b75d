"""``ottla cluster-id``: Kafka's ``kafka-cluster cluster-id``."""

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig

app = typer.Typer(add_completion=False)


@app.command()
def cluster_id(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP, command_config: CommandConfig = None
) -> None:
    """Print the id of the cluster.

    Example: `ottla cluster-id --bootstrap-server 127.0.0.1:9092`.
    """
    from ottla.cli.shared.connection import connected
    from ottla.client.admin.cluster import describe_cluster

    with connected(bootstrap_server, command_config) as client:
        typer.echo(f"Cluster ID: {client.run(describe_cluster).cluster_id}")
