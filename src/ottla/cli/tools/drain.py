"""``ottla drain``: move everything away from a broker."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig, Output, OutputOption
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cli.tools.reassignment_plan import Plan
    from ottla.client.blocking import Client
    from ottla.model.ids import TopicPartition
    from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment

app = typer.Typer(add_completion=False)

NAMED_MAX = 3


@app.command()
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker to be emptied.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would move, and how much; change nothing.")
    ] = False,
    throttle: Annotated[
        int, typer.Option("--throttle", help="Bytes a second between brokers; -1: no limit.")
    ] = -1,
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
    from ottla.cli.shared.printing import joined
    from ottla.cli.tools import reassignment, reassignment_progress
    from ottla.client.admin.cluster import list_partition_reassignments

    with connected(bootstrap_server, command_config) as client:
        begun = {} if dry_run else moves_away_from(broker, client.run(list_partition_reassignments))
        if begun:
            _finish(client, broker, begun)
        names, present = _everything(client)
        alive = sorted(client.engine.metadata.brokers)
        plan = plan_drain(present, broker, alive)
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
            reassignment_progress.rehearse(client, plan, throttle, output)
            return
        reassignment.execute(client, plan, throttle, additional=False, preserve=False, is_awaited=True)
        _finish(client, broker, plan)
        _require_empty(_everything(client)[1], broker)
    typer.echo(f"broker {broker} holds no replicas any more")


def moves_away_from(
    broker: int, under_way: "Mapping[TopicPartition, OngoingPartitionReassignment]"
) -> "Plan":
    """What an earlier call began: moves that take replicas from this broker, each with where it leads."""
    return {
        name: tuple(number for number in move.replicas if number not in move.removing_replicas)
        for name, move in under_way.items()
        if broker in move.removing_replicas
    }


def _everything(client: "Client") -> "tuple[set[str], Plan]":
    """All topics, and who holds their partitions."""
    from ottla.cli.tools.reassignment_plan import present_plan
    from ottla.client.admin.topics import describe_topics

    names = {row.name for row in client.run(describe_topics).topics if row.name is not None}
    return names, present_plan(client, names) if names else {}


def _require_empty(present: "Plan", broker: int) -> None:
    """Somebody may have cancelled a move, or created a topic meanwhile."""
    from ottla.cli.shared.printing import joined

    left = sorted(name for name, replicas in present.items() if broker in replicas)
    if left:
        named = joined(left[:NAMED_MAX]) + (f" and {len(left) - NAMED_MAX} more" if left[NAMED_MAX:] else "")
        raise CommandRefused(
            f"broker {broker} still holds {named}: a move was cancelled, or a topic came meanwhile;"
            f" `ottla drain {broker}` again moves the rest"
        )


def _finish(client: "Client", broker: int, plan: "Plan") -> None:
    from ottla.cli.tools import reassignment, reassignment_progress

    again = f"`ottla drain {broker}` again waits for them, and lifts the throttle"
    reassignment_progress.wait(client, plan, again)
    reassignment.verify(client, plan, preserve=False)


def plan_drain(present: "Plan", broker: int, live: list[int]) -> "Plan":
    """In the broker's place the one with the fewest replicas or, where it was preferred, the fewest of those.

    All other replicas keep their place in the order. A partition that already stands on all other live
    brokers cannot lose one without a replica less, which is refused.
    """
    others = [number for number in live if number != broker]
    held = Counter(number for replicas in present.values() for number in replicas)
    first = Counter(replicas[0] for replicas in present.values() if replicas)
    plan: Plan = {}
    for name, replicas in sorted(present.items()):
        if broker not in replicas:
            continue
        free = [number for number in others if number not in replicas]
        if not free:
            raise CommandRefused(
                f"{name} has {len(replicas)} replicas and there are only {len(others)} other live brokers:"
                " add a broker first, or lower its replication factor with `ottla reassign-partitions`"
            )
        counts = (first, held) if replicas[0] == broker else (held, first)
        chosen = min(free, key=lambda number: (counts[0][number], counts[1][number], number))
        held[chosen] += 1
        first[chosen] += replicas[0] == broker
        plan[name] = tuple(chosen if number == broker else number for number in replicas)
    return plan
