"""``ottla consumer-groups --list`` and ``--describe``, in Kafka's columns."""

from collections.abc import Iterable
from typing import Any

import typer

from ottla.cli.shared.offsets import offsets_at
from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.groups.scope import committed_offsets
from ottla.client.admin.asking import find_coordinator, until_done
from ottla.client.admin.groups import describe_group, list_groups
from ottla.client.blocking.client import Client
from ottla.insight.lag import Lag
from ottla.insight.wording import joined
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from ottla.wire.apis.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Consumer", "Classic", "Share")
WIDTH = 15
LAG_COLUMNS = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
    "client_id",
)


def chosen(client: Client, names: list[str]) -> list[str]:
    """The named groups, or all."""
    return names or sorted(row.group_id for row in client.run(list_groups) if _is_of_consumers(row))


def _is_of_consumers(row: Any) -> bool:
    return row.protocol_type in ("", PROTOCOL_TYPE)


def list_all(client: Client, state: str | None, kind: str | None, output: Output) -> None:
    """Names, with state and type where asked for."""
    states = _canonical("--state", state or "", STATES)
    kinds = _canonical("--type", kind or "", TYPES)
    found = sorted(
        (row for row in client.run(list_groups, states=states) if _is_of_consumers(row)),
        key=lambda row: row.group_id,
    )
    rows = []
    for row in found:
        type_ = (row.group_type or "classic").capitalize()
        if not kinds or type_ in kinds:
            shown = {"group": row.group_id}
            if kind is not None:
                shown["type"] = type_
            if state is not None:
                shown["state"] = row.group_state
            rows.append(shown)
    names = ["group", *(["type"] if kind is not None else []), *(["state"] if state is not None else [])]
    if output is not Output.TABLE:
        print_rows(rows, output, names)
    elif state is None and kind is None:
        for shown in rows:
            typer.echo(shown["group"])
    else:
        width = max([WIDTH, *(len(row["group"]) for row in rows)]) + 10
        for cells in ([name.upper() for name in names], *([row[name] for name in names] for row in rows)):
            typer.echo(f"{cells[0]:<{width}} " + " ".join(f"{cell:<20}" for cell in cells[1:]))


def _canonical(flag: str, text: str, names: tuple[str, ...]) -> list[str]:
    known = {name.lower(): name for name in names}
    wanted = [part.strip().lower() for part in text.split(",") if part.strip()]
    for name in wanted:
        if name not in known:
            raise UsageRefused(f"{flag} {name!r} is none of {', '.join(names)}")
    return [known[name] for name in wanted]


def describe(client: Client, names: list[str], what: str, verbose: bool, output: Output) -> None:
    """Each group; one that does not exist is an error."""
    missing = []
    rows: list[dict[str, Any]] = []
    for name in names:
        group = client.run(describe_group, name)
        if group.group_state == "Dead":
            missing.append(name)
            continue
        if group.group_state == "Empty" and output is Output.TABLE:
            typer.echo(f"\nConsumer group '{name}' has no active members.", err=True)
        elif group.group_state in ("PreparingRebalance", "CompletingRebalance") and output is Output.TABLE:
            typer.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)
        match what:
            case "members":
                rows += _members(group, verbose, output)
            case "state":
                rows += _state(client, group, output)
            case _:
                rows += _offsets(read_lags(client, group), output)
    if output is not Output.TABLE:
        print_rows(rows, output, LAG_COLUMNS if what == "offsets" else ())
    if missing:
        raise CommandRefused(
            f"Consumer group '{missing[0]}' does not exist; see `ottla consumer-groups --list`"
        )


# ---- offsets


def assignment(member: DescribedGroupMember) -> list[TopicPartition]:
    """What a member reads; nothing where it speaks another protocol."""
    if not member.member_assignment:
        return []
    try:
        assigned = decode_assignment(member.member_assignment).assigned_partitions
    except MalformedRequest:
        return []
    return sorted(TopicPartition(row.topic, number) for row in assigned for number in row.partitions)


def read_lags(client: Client, group: DescribedGroup) -> list[Lag]:
    """One row for each partition that has a committed offset or a reader."""
    committed = committed_offsets(client, group.group_id)
    readers = {name: member for member in group.members for name in assignment(member)}
    names = sorted({*committed, *readers})
    ends = offsets_at(client, dict.fromkeys(names, LATEST))
    lags = []
    for name in names:
        member = readers.get(name)
        who = (member.member_id, member.client_host, member.client_id) if member else ("-", "-", "-")
        lags.append(Lag(group.group_id, name, committed.get(name), ends.get(name), *who))
    return lags


def _offsets(lags: list[Lag], output: Output) -> list[dict[str, Any]]:
    if output is Output.TABLE and lags:
        typer.echo("\n".join(offset_lines(lags)))
    return [dict(zip(LAG_COLUMNS, lag_cells(lag), strict=True)) for lag in lags]


def lag_cells(lag: Lag) -> tuple[object, ...]:
    """A row of Kafka's table."""
    return (
        lag.group,
        *lag.partition,
        lag.committed,
        lag.end,
        lag.lag,
        lag.consumer_id,
        lag.host,
        lag.client_id,
    )


def offset_lines(lags: list[Lag]) -> list[str]:
    """Kafka's table: an empty line, the header, the rows."""
    group = _width(lag.group for lag in lags)
    topic = _width(lag.partition.topic for lag in lags)
    consumer = _width(lag.consumer_id for lag in lags)
    host = _width(lag.host for lag in lags)

    def line(*cells: object) -> str:
        shown = ["-" if cell is None else str(cell) for cell in cells]
        widths = (group, topic, 10, 15, 15, 15, consumer, host, 0)
        return " ".join(cell.ljust(width) for cell, width in zip(shown, widths, strict=True))

    header = line(*(name.upper().replace("_", "-") for name in LAG_COLUMNS))
    return ["", header, *(line(*lag_cells(lag)) for lag in lags)]


def _width(texts: Iterable[str]) -> int:
    return max([WIDTH, *map(len, texts)])


# ---- members and state


def _members(group: DescribedGroup, verbose: bool, output: Output) -> list[dict[str, Any]]:
    members = sorted(group.members, key=lambda member: member.member_id)
    has_instances = any(member.group_instance_id for member in members)
    columns = ["CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if has_instances else []), "HOST", "CLIENT-ID"]
    cells = [
        [
            member.member_id,
            *([member.group_instance_id or ""] if has_instances else []),
            member.client_host,
            member.client_id,
        ]
        for member in members
    ]
    if output is Output.TABLE:
        widths = [_width(row[column] for row in cells) for column in range(len(columns))]
        first = max(WIDTH, len(group.group_id))
        typer.echo("")
        for name, row, count, reads in (
            ("GROUP", columns, "#PARTITIONS", "ASSIGNMENT"),
            *(
                (group.group_id, row, str(len(assignment(member))), _reads(member))
                for row, member in zip(cells, members, strict=True)
            ),
        ):
            shown = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            typer.echo(f"{name:<{first}} {shown} {count:<15} {reads if verbose else ''}")
    return [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "host": member.client_host,
            "client_id": member.client_id,
            "partitions": [str(name) for name in assignment(member)],
        }
        for member in members
    ]


def _reads(member: DescribedGroupMember) -> str:
    by_topic: dict[str, list[int]] = {}
    for name in assignment(member):
        by_topic.setdefault(name.topic, []).append(name.partition)
    return ", ".join(f"{topic}({joined(numbers)})" for topic, numbers in by_topic.items()) or "-"


def _state(client: Client, group: DescribedGroup, output: Output) -> list[dict[str, Any]]:
    found = client.run(until_done, "FindCoordinator", None, lambda _: find_coordinator(group.group_id))
    coordinator = f"{found.host}:{found.port}  ({found.node_id})"
    if output is Output.TABLE:
        width = max(25, len(coordinator))
        typer.echo("")
        for cells in (
            ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
            (group.group_id, coordinator, group.protocol_data, group.group_state, len(group.members)),
        ):
            typer.echo(f"{cells[0]:<{width}} {cells[1]:<25} {cells[2]:<20} {cells[3]:<15} {cells[4]}")
    return [
        {
            "group": group.group_id,
            "coordinator": found.node_id,
            "coordinator_address": f"{found.host}:{found.port}",
            "assignment_strategy": group.protocol_data,
            "state": group.group_state,
            "members": len(group.members),
        }
    ]
