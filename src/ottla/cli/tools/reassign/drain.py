"""``ottla drain``: move everything away from a broker."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig, Output, OutputOption
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client
    from ottla.insight.plan import Plan

app = typer.Typer(add_completion=False)

NAMED_MAX = 3


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker to be emptied.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would move, and how much; change nothing.")
    ] = False,
    throttle: Annotated[int, typer.Option(help="Bytes a second between brokers; -1: no limit.")] = -1,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move all replicas and leaderships of a broker to the others, and wait until it is empty.

    Example: `ottla drain 2 --dry-run`, then `ottla drain 2 --throttle 50000000`.
    """
    if output is not Output.TABLE and not dry_run:
        raise UsageRefused("--output is for --dry-run")
    if throttle != -1 and throttle < 1:
        raise UsageRefused("--throttle must be at least 1 byte a second")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.reassign import progress, reassignment
    from ottla.client.admin.cluster import list_partition_reassignments
    from ottla.insight.plan import CannotMove, moves_away_from, plan_drain
    from ottla.insight.wording import joined

    with connected(bootstrap_server, command_config) as client:
        begun = {} if dry_run else moves_away_from(broker, client.run(list_partition_reassignments))
        if begun:
            _finish(client, broker, begun)
        names, present = _everything(client)
        alive = sorted(client.engine.metadata.brokers)
        plan = plan_drain(present, broker, alive)
        if isinstance(plan, CannotMove):
            raise CommandRefused(plan.why)
        if not plan and broker not in alive:
            raise CommandRefused(
                f"there is no broker {broker} and no replica on it; alive are {joined(alive)}"
            )
        if not plan and not dry_run and not client.run(list_partition_reassignments):
            # An earlier call may have been stopped while it waited: its throttle is still there.
            reassignment.lift_throttles(client, names, is_told=False)
        if not plan:
            typer.echo(f"broker {broker} holds no replicas", err=output is not Output.TABLE)
            return
        if dry_run:
            progress.rehearse(client, plan, throttle, output)
            return
        reassignment.execute(client, plan, throttle, additional=False, preserve=False, is_awaited=True)
        _finish(client, broker, plan)
        _require_empty(_everything(client)[1], broker)
    typer.echo(f"broker {broker} holds no replicas any more")


def _everything(client: "Client") -> "tuple[set[str], Plan]":
    """All topics, and who holds their partitions."""
    from ottla.cli.tools.reassign.plan import present_plan
    from ottla.client.admin.topics import describe_topics

    names = {row.name for row in client.run(describe_topics).topics if row.name is not None}
    return names, present_plan(client, names) if names else {}


def _require_empty(present: "Plan", broker: int) -> None:
    """Somebody may have cancelled a move, or created a topic meanwhile."""
    from ottla.insight.wording import joined

    left = sorted(name for name, replicas in present.items() if broker in replicas)
    if left:
        named = joined(left[:NAMED_MAX]) + (f" and {len(left) - NAMED_MAX} more" if left[NAMED_MAX:] else "")
        raise CommandRefused(
            f"broker {broker} still holds {named}: a move was cancelled, or a topic came meanwhile;"
            f" `ottla drain {broker}` again moves the rest"
        )


def _finish(client: "Client", broker: int, plan: "Plan") -> None:
    from ottla.cli.tools.reassign import progress, reassignment

    again = f"`ottla drain {broker}` again waits for them, and lifts the throttle"
    progress.wait(client, plan, again)
    reassignment.verify(client, plan, preserve=False)
