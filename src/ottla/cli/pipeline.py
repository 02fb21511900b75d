"""``ottla pipeline``: data work on a cluster, run by Spark."""

from typing import Annotated

import typer

from ottla.cli import pipeline_run

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Jobs over topics, run by Spark.")
app.add_typer(pipeline_run.app, name="run")


@app.command("list")
def list_jobs(
    plain: Annotated[bool, typer.Option("--plain", help="Only the names, one a line.")] = False,
) -> None:
    """The jobs, one a line."""
    from ottla.spark.jobs import JOBS

    for name, purpose in JOBS.items():
        typer.echo(name if plain else f"{name:<10} {purpose}")
