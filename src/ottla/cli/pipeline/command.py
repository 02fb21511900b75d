"""``ottla pipeline``: data work on a cluster, run by Spark."""

from typing import Annotated

import typer

from ottla.cli.pipeline import run
from ottla.cli.pipeline.session import LOCAL, a_session, interruptible, refusals_in_one_sentence
from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Jobs over topics, run by Spark.\n\nExample: `ottla pipeline run audit --topics orders`.",
)
app.add_typer(run.app, name="run")


@app.command("list")
def list_jobs(
    plain: Annotated[bool, typer.Option("--plain", help="Only the names, one a line.")] = False,
) -> None:
    """The jobs, one a line.

    Example: `ottla pipeline list`.
    """
    from ottla.spark.jobs import JOBS

    for name, purpose in JOBS.items():
        typer.echo(name if plain else f"{name:<12} {purpose}")


@app.command()
def demo(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    master: run.Master = LOCAL,
) -> None:
    """Sample orders flow into a topic, and a streaming job counts them while they come.

    Example: `ottla pipeline demo`.
    """
    from ottla.cli.shared.connection import connected, servers_here
    from ottla.spark.jobs.shared.report import Report

    run.require_master(master)
    servers = bootstrap_server or servers_here()

    def work() -> Report:
        with connected(servers):
            pass
        with refusals_in_one_sentence({"bootstrap_servers": servers}):
            from ottla.spark.demo import TOPIC, SampleOrders, answer

            orders = SampleOrders(servers)
            orders.start()
            typer.echo(f"sample orders flow into topic {TOPIC}; Spark is starting")
            with a_session(master, "ottla demo", is_brief=True) as spark:
                typer.echo("Spark runs; a stream counts the orders by country")
                return answer(spark, servers, orders, typer.echo)

    report = interruptible(work, lambda: "the sample orders so far are in topic demo-orders")
    for line in report.lines():
        typer.echo(line)
    if not report.is_well:
        raise typer.Exit(1)
