"""``ottla sim``: a whole cluster in virtual time, from a seed."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def sim(
    seed: Annotated[int | None, typer.Argument(help="Play this seed and tell its story.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Without SEED: how many seeds to run.")] = 100,
    first: Annotated[int | None, typer.Option(help="The first of them; random if not given.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many run at the same time.")] = 1,
    seconds: Annotated[int, typer.Option(min=0, help="Virtual seconds of faults per seed.")] = 60,
    shrink: Annotated[bool, typer.Option(help="How soon does a failing seed fail?")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="With SEED: only the outcome.")] = False,
) -> None:
    """Run brokers, ZooKeeper, clients and faults in virtual time, and check every promise.

    The same seed gives the same run, to the byte: `ottla sim 7` replays it and tells what happened.
    Many seeds: `ottla sim --seeds 1000 --jobs 2`.
    """
    from ottla.cli.sim_report import play_many, play_one

    if seed is not None:
        failed = play_one(seed, seconds, is_quiet=quiet, shrink=shrink)
    else:
        failed = play_many(first, seeds, jobs, seconds)
    if failed:
        raise typer.Exit(1)
