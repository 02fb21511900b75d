"""``ottla watch``: the cluster on one screen, live, with what changed scrolling by."""

from typing import Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig, EpochFrom

app = typer.Typer(add_completion=False)

EVENTS_SHOWN = 12
_IMPATIENT = {"request.timeout.ms": "2000", "default.api.timeout.ms": "6000"}
"""A frozen broker shall not freeze the picture: another is asked."""


@app.command()
def watch(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    times: Annotated[int | None, typer.Option(min=1, help="End after so many looks.")] = None,
    zookeeper: EpochFrom = None,
    command_config: CommandConfig = None,
) -> None:
    """Watch brokers, leaders and groups; elections and changes of the ISR scroll by. Ctrl-C ends it.

    Into a pipe it prints one line for each change.

    Example: `ottla watch`, and in another terminal kill a broker.
    """
    import sys

    from ottla.cli.inspect.controller_epoch import watched_epoch, zookeeper_known
    from ottla.cli.inspect.watching import watch_drawn, watch_printed
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.signals import stop_once

    with (
        connected(bootstrap_server, command_config, _IMPATIENT) as client,
        watched_epoch(zookeeper_known(zookeeper, bootstrap_server)) as epoch,
        stop_once() as stop,
    ):
        show = watch_drawn if sys.stdout.isatty() else watch_printed
        show(client, epoch, round(every * 1000), times)
    if stop.asked:
        raise typer.Exit(130)
