"""What ``ottla reassign-partitions`` does, in Kafka's words."""

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.json_files import read_json
from ottla.cli.shared.options import Output, numbers
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.reassign.directory_moves import (
    Directories,
    cancel_moves,
    places,
    start_moves,
    verify_moves,
)
from ottla.cli.tools.reassign.plan import present_plan
from ottla.client.admin.cluster import alter_partition_reassignments, list_partition_reassignments
from ottla.client.admin.configs import Change, ConfigOperation, Resource, ResourceType, alter_configs
from ottla.client.blocking.client import Client
from ottla.controller.placement import place_replicas
from ottla.insight.moving import RATES, lifted_throttles, throttle_changes, throttled_moves
from ottla.insight.plan import Plan, plan_text
from ottla.insight.wording import joined
from ottla.model.errors import Refusal
from ottla.model.ids import BrokerId, TopicPartition

NO_DIRECTORIES = Directories()


def generate(client: Client, file: Path, broker_list: str, uses_racks: bool) -> None:
    """Propose a plan, topic by topic, as new topics would be placed."""
    brokers = numbers("--broker-list", broker_list)
    _require_live(client, brokers)
    if len(set(brokers)) != len(brokers):
        raise UsageRefused("--broker-list names a broker twice")
    rows: Any = read_json(file).get("topics")
    topics = [str(row.get("topic")) for row in rows] if _are_topics(rows) else []
    if not topics:
        raise CommandRefused(f'{file} has no list "topics" like [{{"topic": "foo"}}]')
    present = present_plan(client, set(topics))
    known = client.engine.metadata.brokers
    racks = {BrokerId(number): known[number].rack if uses_racks else None for number in sorted(brokers)}
    random = Random()
    proposed: Plan = {}
    for topic in sorted(set(topics)):
        held = {name: replicas for name, replicas in present.items() if name.topic == topic}
        factor = len(next(iter(held.values())))
        placed = place_replicas(
            racks,
            len(held),
            factor,
            start=random.randrange(len(racks)),
            shift=random.randrange(len(racks)),
        )
        if isinstance(placed, Refusal):
            raise CommandRefused(f"{topic}: {placed.why}")
        proposed.update({TopicPartition(topic, number): placed[number] for number in placed})
    typer.echo(f"Current partition replica assignment\n{plan_text(present)}\n")
    typer.echo(f"Proposed partition reassignment configuration\n{plan_text(proposed)}")


def _are_topics(rows: Any) -> bool:
    return isinstance(rows, list) and all(
        isinstance(r, dict) and isinstance(r.get("topic"), str) for r in rows
    )


def execute(
    client: Client,
    plan: Plan,
    throttle: int,
    additional: bool,
    preserve: bool,
    directories: Directories = NO_DIRECTORIES,
    *,
    is_awaited: bool = False,
) -> None:
    """Start the moves; nothing is touched when the plan cannot be.

    Who awaits them lifts the throttle at the end, unless other moves go on.
    """
    if preserve and (throttle != -1 or directories.throttle != -1):
        raise UsageRefused("--preserve-throttles and a throttle contradict each other")
    under_way = client.run(list_partition_reassignments)
    if under_way and not additional:
        raise CommandRefused(
            f"Cannot execute because {len(under_way)} partitions are being reassigned already. Use"
            " --additional to start more, or to change the throttle by resubmitting the current reassignment"
        )
    present = checked_plan(client, plan)
    typer.echo(
        f"Current partition replica assignment\n\n{plan_text({n: present[n] for n in plan})}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    is_throttled = throttle != -1 or directories.throttle != -1
    if is_throttled and (under_way or not is_awaited):
        typer.echo(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the"
            " throttle is removed."
        )
    if throttle != -1:
        moves = throttled_moves(plan, present, under_way)
        for changes in throttle_changes(moves, throttle, client.engine.metadata.brokers):
            _alter(client, changes)
        typer.echo(f"The inter-broker throttle limit was set to {throttle} B/s")
    if directories.throttle != -1:
        _throttle_directories(client, {replica.broker for replica in directories.moves}, directories.throttle)
    targets: dict[TopicPartition, tuple[int, ...] | None] = dict(plan)
    failed = _failures(client.run(alter_partition_reassignments, targets))
    for name, why in failed.items():
        typer.echo(f"Error reassigning {name}: {why}", err=True)
    started = sorted(name for name in plan if name not in failed)
    if started:
        plural = "s" if len(started) > 1 else ""
        typer.echo(f"Successfully started partition reassignment{plural} for {joined(started)}")
    if failed:
        raise CommandRefused(f"{len(failed)} of {len(plan)} partitions were not reassigned")
    start_moves(client, directories.moves, directories.timeout_ms)


def verify(
    client: Client,
    plan: Plan,
    preserve: bool,
    output: Output = Output.TABLE,
    directories: Directories = NO_DIRECTORIES,
) -> None:
    """Say of each partition how far it is; when none moves any more, lift the throttles."""
    under_way = client.run(list_partition_reassignments)
    present = present_plan(client, {name.topic for name in plan})
    if output is not Output.TABLE:
        print_rows(
            [_state_row(name, plan[name], present.get(name), name in under_way) for name in plan], output
        )
        now = places(client, directories.moves) if directories.moves else {}
        if not under_way and not preserve and all(place.future is None for place in now.values()):
            lift_throttles(client, {name.topic for name in plan}, is_told=False)
        return
    typer.echo("Status of partition reassignment:")
    for name, wanted in sorted(plan.items()):
        if name in under_way:
            typer.echo(f"Reassignment of partition {name} is still in progress.")
        elif present.get(name) == wanted:
            typer.echo(f"Reassignment of partition {name} is completed.")
        else:
            typer.echo(
                f"There is no active reassignment of partition {name}, but replica set is"
                f" {joined(present.get(name, ()))} rather than {joined(wanted)}."
            )
    if verify_moves(client, directories.moves) and not under_way and not preserve:
        lift_throttles(client, {name.topic for name in plan})


def _state_row(
    name: TopicPartition, wanted: tuple[int, ...], present: tuple[int, ...] | None, is_moving: bool
) -> dict[str, Any]:
    state = "in progress" if is_moving else "completed" if present == wanted else "not as planned"
    return {"partition": str(name), "state": state, "replicas": present or (), "wanted": wanted}


def cancel(client: Client, plan: Plan, preserve: bool, directories: Directories = NO_DIRECTORIES) -> None:
    """Turn moves back."""
    under_way = client.run(list_partition_reassignments)
    moving = sorted(name for name in plan if name in under_way)
    failed: dict[TopicPartition, str] = {}
    if moving:
        failed = _failures(client.run(alter_partition_reassignments, dict.fromkeys(moving)))
        done = [name for name in moving if name not in failed]
        typer.echo(f"Successfully cancelled partition reassignments for: {joined(done)}.")
    else:
        typer.echo("None of the specified partition reassignments are active.")
    cancel_moves(client, directories.moves, directories.timeout_ms)
    if failed:
        name, why = next(iter(failed.items()))
        raise CommandRefused(f"the reassignment of {name} was not cancelled: {why}")
    if not preserve:
        lift_throttles(client, {name.topic for name in plan})


def list_moves(client: Client, output: Output) -> None:
    """All moves that go on."""
    under_way = client.run(list_partition_reassignments)
    if output is not Output.TABLE:
        rows = [
            {
                "partition": str(name),
                "replicas": move.replicas,
                "adding": move.adding_replicas,
                "removing": move.removing_replicas,
            }
            for name, move in sorted(under_way.items())
        ]
        print_rows(rows, output, ["partition", "replicas", "adding", "removing"])
        return
    if not under_way:
        typer.echo("No partition reassignments found.")
        return
    typer.echo("Current partition reassignments:")
    for name, move in sorted(under_way.items()):
        adding = f" adding: {joined(move.adding_replicas)}." if move.adding_replicas else ""
        removing = f" removing: {joined(move.removing_replicas)}." if move.removing_replicas else ""
        typer.echo(f"{name}: replicas: {joined(move.replicas)}.{adding}{removing}")


def lift_throttles(client: Client, topics: set[str], *, is_told: bool = True) -> None:
    """Remove the throttles of all brokers and of these topics."""
    brokers = sorted(client.engine.metadata.brokers)
    names = sorted(topics)
    if is_told:
        typer.echo(
            f"Clearing broker-level throttles on broker{'s' if len(brokers) > 1 else ''} {joined(brokers)}"
        )
        typer.echo(f"Clearing topic-level throttles on topic{'s' if len(names) > 1 else ''} {joined(names)}")
    for changes in lifted_throttles(brokers, names):
        _alter(client, changes)


def _throttle_directories(client: Client, brokers: set[int], rate: int) -> None:
    """These brokers copy between their own directories no faster than this."""
    limit: Change = (ConfigOperation.SET, str(rate))
    _alter(client, {(ResourceType.BROKER, str(broker)): {RATES[2]: limit} for broker in sorted(brokers)})
    typer.echo(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def _alter(client: Client, changes: dict[Resource, dict[str, Change]]) -> None:
    for row in client.run(alter_configs, changes) if changes else ():
        if row.error_code:
            raise CommandRefused(f"{row.resource_name}: {reason(row.error_code, row.error_message)}")


def checked_plan(client: Client, plan: Plan) -> Plan:
    """The present holders, if the plan names only what exists and brokers that live."""
    present = present_plan(client, {name.topic for name in plan})
    missing = sorted(name for name in plan if name not in present)
    if missing:
        raise CommandRefused(f"there is no partition {missing[0]}")
    _require_live(client, {broker for replicas in plan.values() for broker in replicas})
    return present


def _require_live(client: Client, brokers: Iterable[int]) -> None:
    known = client.engine.metadata.brokers
    for broker in brokers:
        if broker not in known:
            raise CommandRefused(f"Unknown broker id {broker}; alive are {joined(sorted(known))}")


def _failures(rows: dict[TopicPartition, Any]) -> dict[TopicPartition, str]:
    return {n: reason(r.error_code, r.error_message) for n, r in sorted(rows.items()) if r.error_code}
