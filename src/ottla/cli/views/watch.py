"""``ottla watch``: the cluster on one screen, live, with what changed scrolling by."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig, EpochFrom

if TYPE_CHECKING:
    from ottla.cli.views.cluster_view import ClusterView

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

    from ottla.cli.shared.connection import connected
    from ottla.cli.signals import stop_once
    from ottla.cli.views.controller_epoch import watched_epoch, zookeeper_known
    from ottla.cli.views.watching import watch_drawn, watch_printed

    with (
        connected(bootstrap_server, command_config, _IMPATIENT) as client,
        watched_epoch(zookeeper_known(zookeeper, bootstrap_server)) as epoch,
        stop_once() as stop,
    ):
        show = watch_drawn if sys.stdout.isatty() else watch_printed
        show(client, epoch, round(every * 1000), times)
    if stop.asked:
        raise typer.Exit(130)


def changes(before: "ClusterView", now: "ClusterView") -> list[str]:
    """What happened between two pictures, in words; causes before their effects."""
    events = []
    if before.controller != now.controller:
        events.append(f"controller: broker {before.controller} -> {now.controller}")
    epochs = (before.controller_epoch, now.controller_epoch)
    if None not in epochs and epochs[0] != epochs[1]:
        events.append(f"controller epoch {epochs[0]} -> {epochs[1]}")
    was = {row.number for row in before.brokers if row.address is not None}
    alive = {row.number for row in now.brokers if row.address is not None}
    events += [f"broker {number} is gone" for number in sorted(was - alive)]
    events += [f"broker {number} is here" for number in sorted(alive - was)]
    shifts = []
    for name, leader in sorted(now.leaders.items()):
        if name not in before.leaders:
            events.append(f"{name} created, led by {leader}")
        elif before.leaders[name] != leader:
            events.append(f"{name} leader {before.leaders[name]} -> {leader}")
        if name in before.isrs and set(before.isrs[name]) != set(now.isrs[name]):
            old, new = (",".join(map(str, view.isrs[name])) for view in (before, now))
            shifts.append(f"{name} in sync {old} -> {new}")
    events += shifts
    events += [f"{name} deleted" for name in sorted(before.leaders.keys() - now.leaders.keys())]
    return events
