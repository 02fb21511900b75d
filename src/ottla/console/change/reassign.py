"""Move replicas: even out, drain a broker, change the factor, a plan as JSON, or cancel what goes on."""

import asyncio

from ottla.client.admin.cluster import alter_partition_reassignments, list_partition_reassignments
from ottla.client.admin.configs import alter_configs
from ottla.client.aio.client import Client
from ottla.client.errors import ClientError
from ottla.console.change.act import (
    Act,
    At,
    CannotAct,
    Change,
    Field,
    Filled,
    Outcome,
    Plan,
    number_in,
    outcome,
)
from ottla.insight.moving import (
    lifted_throttles,
    plan_even,
    plan_factor,
    plan_from_text,
    throttle_changes,
    throttled_moves,
)
from ottla.insight.plan import CannotMove, Move, plan_drain, rehearsed
from ottla.insight.plan import Plan as Replicas
from ottla.insight.wording import counted, duration_text, joined, size_text
from ottla.model.ids import TopicPartition

EVEN, DRAIN, FACTOR, PASTED, CANCEL = (
    "even out",
    "drain a broker",
    "change the replication factor",
    "as in the plan below",
    "cancel what goes on",
)
MB = 1_000_000
LOOK_S = 2.0


async def _plan(at: At, filled: Filled) -> Plan:
    words = filled.get("q", "").lower().split()
    rows = at.picture.partitions
    scope = {name for name in rows if all(word in str(name).lower() for word in words)}
    if filled["how"] == CANCEL:
        return _cancelling(at, scope)
    present: Replicas = {name: row.replicas for name, row in rows.items()}
    wanted = _wanted(at, filled, {name: present[name] for name in scope})
    if moving := sorted(name for name in wanted if rows[name].is_moving):
        raise CannotAct(
            f"{counted(len(moving), 'partition')} of the plan move already: wait, or cancel first."
        )
    moves = rehearsed(wanted, present, at.sizes)
    if not moves:
        return Plan("Nothing would move.")
    rate = number_in(filled, "throttle", "The throttle", 1, 1_000_000) * MB if filled.get("throttle") else 0
    total = sum(move.bytes for move in moves)
    took = f", at least {duration_text(total / rate)} at {size_text(rate)}/s" if rate else ", unthrottled"

    async def work() -> list[Outcome]:
        return await _move(at, wanted, present, rate)

    return Plan(
        f"{counted(len(moves), 'partition')} would change; {size_text(total)} would be copied{took}.",
        work,
        [_row(move) for move in moves],
    )


def _wanted(at: At, filled: Filled, present: Replicas) -> Replicas:
    """The partitions that change, by the way that was chosen."""
    racks = {number: broker.rack for number, broker in at.picture.brokers.items()}
    plan: Replicas | CannotMove
    match filled["how"]:
        case str(how) if how == EVEN:
            plan = plan_even(present, racks)
        case str(how) if how == DRAIN:
            plan = plan_drain(present, number_in(filled, "broker", "The broker", 0, 2**31 - 1), sorted(racks))
        case str(how) if how == FACTOR:
            plan = plan_factor(present, number_in(filled, "factor", "The factor", 1, 1000), racks)
        case str(how) if how == PASTED:
            plan = plan_from_text(filled.get("json", ""))
        case other:
            raise CannotAct(f"{other!r} is no way to move replicas.")
    if isinstance(plan, CannotMove):
        raise CannotAct(f"There is no such plan: {plan.why}.")
    for name, replicas in plan.items():
        if name not in at.picture.partitions:
            raise CannotAct(f"There is no partition {name}.")
        if dead := [
            broker for broker in replicas if broker not in racks and broker not in present.get(name, ())
        ]:
            raise CannotAct(f"Broker {dead[0]} is not alive, so {name} cannot move there.")
    return {name: replicas for name, replicas in plan.items() if replicas != present.get(name)}


def _row(move: Move) -> Change:
    name = move.partition
    then = joined(move.then) + (
        f" (copies {size_text(move.bytes)})" if set(move.then) - set(move.now) else ""
    )
    return Change(str(name), joined(move.now), then, f"/partitions/{name.topic}/{name.partition}")


async def _move(at: At, plan: Replicas, present: Replicas, rate: int) -> list[Outcome]:
    under_way = await at.client.run(list_partition_reassignments)
    if rate:
        for changes in throttle_changes(throttled_moves(plan, present, under_way), rate, at.picture.live):
            for row in await at.client.run(alter_configs, changes):
                if row.error_code:
                    return [outcome(f"throttle of {row.resource_name}", row.error_code, row.error_message)]
        topics = {name.topic for name in (*plan, *under_way)}
        at.go_on(_lift_at_the_end(at, topics))
    done = await at.client.run(alter_partition_reassignments, dict(plan))
    return [
        outcome(str(name), row.error_code, row.error_message, "begun") for name, row in sorted(done.items())
    ]


async def _lift_at_the_end(at: At, topics: set[str]) -> None:
    """When nothing moves any more, the throttle goes; whoever looks or not."""
    async with Client(at.client.config) as client:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if await client.run(list_partition_reassignments):
                    continue
                for changes in lifted_throttles(at.picture.live, topics):
                    await client.run(alter_configs, changes)
            except ClientError:
                continue
            at.log("the throttle of the reassignment is lifted")
            return


def _cancelling(at: At, scope: set[TopicPartition]) -> Plan:
    rows = at.picture.partitions
    moving = {name: rows[name] for name in sorted(scope) if rows[name].is_moving}
    if not moving:
        return Plan("Nothing moves.")

    async def work() -> list[Outcome]:
        done = await at.client.run(alter_partition_reassignments, dict.fromkeys(moving))
        return [
            outcome(str(name), row.error_code, row.error_message, "cancelled")
            for name, row in sorted(done.items())
        ]

    changes = [
        Change(
            str(name),
            f"adding {joined(row.adding) or 'none'}, removing {joined(row.removing) or 'none'}",
            joined(broker for broker in row.replicas if broker not in row.adding),
        )
        for name, row in moving.items()
    ]
    return Plan(f"{counted(len(moving), 'move')} would be turned back.", work, changes)


def _command(filled: Filled) -> str:
    if filled.get("how") == DRAIN:
        return f"ottla drain {filled.get('broker') or 'BROKER'} --dry-run"
    return "ottla reassign-partitions --rehearse --reassignment-json-file plan.json"


REASSIGN = Act(
    "reassign",
    "/reassign",
    "Move replicas",
    "Move them",
    (
        Field("how", "How", "choice", "", (EVEN, DRAIN, FACTOR, PASTED, CANCEL)),
        Field("q", "Partitions", hint="words in their names; empty: all", is_needed=False),
        Field("broker", "Broker to drain", is_needed=False),
        Field("factor", "Replication factor", is_needed=False),
        Field("json", "Plan", "area", "as `ottla reassign-partitions` reads it", is_needed=False),
        Field("throttle", "Throttle, MB/s", hint="lifted by itself at the end; empty: none", is_needed=False),
    ),
    _plan,
    _command,
    does_harm=True,
)
