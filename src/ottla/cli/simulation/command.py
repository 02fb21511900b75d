"""``ottla sim``: a whole cluster in virtual time, from a seed."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """
Examples:

  ottla sim 7                          the story of seed 7, and whether every promise was kept

  ottla sim 7 --log                    the same with what the brokers log

  ottla sim --seeds 1000 --jobs 2      a thousand new seeds, with figures

  ottla sim 7 --shrink                 a failing seed, reduced to the faults that it takes

  ottla sim 7 --until 9 --brokers 3 --faults 4,6 --without group,churn      what a reduction printed
"""


@app.command(epilog=EXAMPLES)
def sim(
    seed: Annotated[
        int | None, typer.Argument(metavar="SEED", help="Play this seed and tell its story.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Without SEED: how many seeds to run.")] = 100,
    first: Annotated[int | None, typer.Option(help="The first of them; random if not given.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many run at the same time.")] = 1,
    seconds: Annotated[int, typer.Option(min=0, help="Virtual seconds of faults per seed.")] = 60,
    until: Annotated[
        int | None, typer.Option(min=1, help="With SEED: end the faults after so many virtual seconds.")
    ] = None,
    brokers: Annotated[int | None, typer.Option(min=3, help="With SEED: so many brokers.")] = None,
    faults: Annotated[str | None, typer.Option(help="With SEED: only the faults of these numbers.")] = None,
    without: Annotated[
        str, typer.Option(help="With SEED: leave out group, churn, careless, topics, directories.")
    ] = "",
    shrink: Annotated[bool, typer.Option("--shrink", help="Reduce a failing seed to what it takes.")] = False,
    log: Annotated[bool, typer.Option("--log", help="With SEED: also what the brokers log.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="With SEED: only the outcome.")] = False,
) -> None:
    """Run brokers, ZooKeeper, clients and faults in virtual time, and check every promise.

    The same seed gives the same run, to the byte. Faults are numbered in the story; whatever fails is
    printed with the command that replays it.
    """
    from ottla.cli.simulation.report import Replay, play_many, play_one

    if seed is not None:
        replay = Replay(seed, seconds, until, brokers, faults, without)
        failed = play_one(replay, is_quiet=quiet, shrink=shrink, with_log=log)
    else:
        failed = play_many(first, seeds, jobs, seconds)
    if failed:
        raise typer.Exit(1)
