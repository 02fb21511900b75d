"""``ottla drill``: kill a broker, watch controller and leaders move, restart it, balance again."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def drill(
    loss: Annotated[bool, typer.Option(help="Also show what acks=1 may lose and acks=all does not.")] = True,
) -> None:
    """Play the story of a broker's death on this machine, in about a minute, and check every step.

    Three brokers, a topic with three partitions on all of them. Broker 0, the controller, is killed; another
    takes its office and its partitions; it comes back, follows, and is given its partitions again.
    Exit code 1 says that the cluster did not behave.

    Example: `ottla drill`, or without the story of lost records `ottla drill --no-loss`.
    """
    from ottla.cli.drill.story import Drill
    from ottla.cli.shared.signals import stop_once

    with stop_once() as stop:
        Drill(typer.echo).play(with_loss=loss)
    if stop.asked:
        typer.echo("ottla: the drill was stopped before its end; its cluster is gone", err=True)
        raise typer.Exit(130)
