"""``ottla consumer-groups --reset-offsets``: where a group shall go on, in all of Kafka's forms."""

import csv
import io
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Self

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.offsets import offsets_at, require_leaders
from ottla.cli.shared.options import Output, read_text
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.groups.scope import committed_offsets, named_partitions
from ottla.client.admin.groups import alter_group_offsets, describe_group
from ottla.client.blocking.client import Client
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST

Positions = dict[TopicPartition, int]

_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d+)D)?(?:T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?"
    r"(?:(?P<seconds>[+-]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


class Mode(Enum):
    """What is done with the plan."""

    PLAN = "plan"
    EXECUTE = "execute"
    EXPORT = "export"
    EXECUTE_AND_EXPORT = "both"

    @classmethod
    def of(cls, *, dry_run: bool, execute: bool, export: bool) -> Self:
        if dry_run and execute:
            raise UsageRefused("--dry-run and --execute contradict each other")
        if export:
            return cls("both" if execute else "export")
        return cls("execute" if execute else "plan")


def reset(
    client: Client,
    groups: list[str],
    topics: list[str],
    all_topics: bool,
    target: Mapping[str, object],
    *,
    mode: Mode,
    output: Output,
    is_one_group: bool = True,
) -> None:
    """Plan for every group first; only then is anything written.

    ``is_one_group``: exactly one was named, so that the lines of a plan need not name it.
    """
    if len(target) != 1:
        raise UsageRefused(
            "exactly one target is needed: --to-earliest, --to-latest, --to-current, --to-offset,"
            " --shift-by, --to-datetime, --by-duration or --from-file"
        )
    flag, value = next(iter(target.items()))
    if flag != "--from-file" and bool(topics) == all_topics:
        raise UsageRefused("--reset-offsets needs --topic or --all-topics, and not both")
    plans: dict[str, Positions] = {}
    filed: dict[str, Positions] = {}
    if flag == "--from-file":
        filed = read_plan(read_text(Path(str(value))), groups, is_one_group=is_one_group)
        groups = list(filed)
    for group in groups:
        state = client.run(describe_group, group).group_state
        if state not in ("Empty", "Dead"):
            raise CommandRefused(
                f"Assignments can only be reset if the group '{group}' is inactive, but the current state"
                f" is {state}: stop its consumers first"
            )
        if flag == "--from-file":
            plans[group] = _clamped(client, filed[group])
        else:
            committed = committed_offsets(client, group)
            if all_topics and not committed:
                _leave(_nothing_committed(group, state), is_one_group)
            scope = sorted(committed) if all_topics else named_partitions(client, topics)
            require_leaders(client, scope)
            plans[group] = _plan(client, scope, committed, flag, value)
    if mode in (Mode.EXECUTE, Mode.EXECUTE_AND_EXPORT):
        for group, plan in plans.items():
            _write(client, group, plan)
    _show(plans, mode, output, is_one_group)
    if mode is Mode.PLAN and output is Output.TABLE:
        typer.echo("nothing was changed: add --execute to reset the offsets", err=True)


def _leave(why: str, is_one_group: bool) -> None:
    """Nothing is to be reset for a group: an error if it is the only one."""
    if is_one_group:
        raise CommandRefused(why)
    typer.echo(why, err=True)


def _nothing_committed(group: str, state: str) -> str:
    if state == "Dead":
        return f"Consumer group '{group}' does not exist; --topic sets offsets for one that is to come"
    return f"group '{group}' has committed no offsets, so --all-topics means none; name them with --topic"


def _plan(
    client: Client, scope: list[TopicPartition], committed: Positions, flag: str, value: object
) -> Positions:
    match flag:
        case "--to-earliest":
            return offsets_at(client, dict.fromkeys(scope, EARLIEST))
        case "--to-latest":
            return offsets_at(client, dict.fromkeys(scope, LATEST))
        case "--to-current":
            others = [name for name in scope if name not in committed]
            current = {name: committed[name] for name in scope if name in committed}
            return {**current, **offsets_at(client, dict.fromkeys(others, LATEST))}
        case "--to-offset":
            assert isinstance(value, int), "Typer gives a number"
            return _clamped(client, dict.fromkeys(scope, value))
        case "--shift-by":
            assert isinstance(value, int), "Typer gives a number"
            missing = [name for name in scope if name not in committed]
            if missing:
                raise CommandRefused(
                    f"Cannot shift offset for partition {missing[0]} since there is no committed offset"
                )
            return _clamped(client, {name: committed[name] + value for name in scope})
        case "--to-datetime":
            return _at(client, scope, parse_datetime(str(value)))
        case _:
            return _at(client, scope, time.time_ns() // 1_000_000 - parse_duration_ms(str(value)))


def _at(client: Client, scope: list[TopicPartition], timestamp_ms: int) -> Positions:
    """The first record at or after a time; the end where there is none."""
    found = offsets_at(client, dict.fromkeys(scope, timestamp_ms))
    none = [name for name, offset in found.items() if offset < 0]
    return {**found, **offsets_at(client, dict.fromkeys(none, LATEST))}


def _clamped(client: Client, wanted: Positions) -> Positions:
    """Offsets inside the log; those outside are set to its nearer end, and told."""
    low = offsets_at(client, dict.fromkeys(wanted, EARLIEST))
    high = offsets_at(client, dict.fromkeys(wanted, LATEST))
    missing = [str(name) for name in wanted if name not in low]
    if missing:
        raise CommandRefused(f"{', '.join(missing)}: there is no such partition, or it has no leader")
    inside = {}
    for name, offset in wanted.items():
        inside[name] = min(max(offset, low[name]), high[name])
        if inside[name] != offset:
            typer.echo(f"{name}: offset {offset} is out of range, set to {inside[name]}", err=True)
    return inside


def _show(plans: Mapping[str, Positions], mode: Mode, output: Output, is_one_group: bool) -> None:
    rows = [(group, *name, offset) for group, plan in plans.items() for name, offset in sorted(plan.items())]
    if mode in (Mode.EXPORT, Mode.EXECUTE_AND_EXPORT):
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(row[1:] if is_one_group else row for row in rows)
        typer.echo(lines.getvalue(), nl=False)
    elif output is not Output.TABLE:
        names = ("group", "topic", "partition", "new_offset")
        print_rows([dict(zip(names, row, strict=True)) for row in rows], output)
    else:
        typer.echo(f"\n{'GROUP':<30} {'TOPIC':<30} {'PARTITION':<10} {'NEW-OFFSET':<15}")
        for group, topic, partition, offset in rows:
            typer.echo(f"{group:<30} {topic:<30} {partition:<10} {offset:<15}")


def _write(client: Client, group: str, plan: Positions) -> None:
    if not plan:
        return
    for name, code in client.run(alter_group_offsets, group, plan).items():
        if code:
            raise CommandRefused(f"group {group}: the offset of {name} was not set: {reason(code)}")


def read_plan(text: str, groups: list[str], *, is_one_group: bool) -> dict[str, Positions]:
    """The lines of an exported plan for these groups: topic,partition,offset behind the group's name.

    Where one group alone was named, lines may leave it out, and it must be in the plan. Of several, those
    that are not in it are told, and stay as they are.
    """
    form = "topic,partition,offset" if is_one_group else "group,topic,partition,offset"
    plans: dict[str, Positions] = {}
    for number, cells in enumerate(csv.reader(text.splitlines()), 1):
        match cells:
            case []:
                continue
            case [topic, partition, offset] if is_one_group and partition.isdecimal() and offset.isdecimal():
                group = groups[0]
            case [group, topic, partition, offset] if partition.isdecimal() and offset.isdecimal():
                pass
            case _:
                raise CommandRefused(f"line {number} of the plan is not {form}: {','.join(cells)}")
        plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    for group in groups:
        if group not in plans:
            _leave(f"the plan has no line for group '{group}'; it is for {_named(plans)}", is_one_group)
    return {group: plans[group] for group in groups if group in plans}


def _named(groups: Iterable[str]) -> str:
    return ", ".join(f"'{group}'" for group in groups) or "none"


def parse_datetime(text: str) -> int:
    """``2026-01-31T12:00:00.000``, in UTC unless it names a zone, as milliseconds."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UsageRefused(f"--to-datetime {text!r} is not of the form 2026-01-31T12:00:00.000") from None
    return round((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """``PnDTnHnMnS`` as milliseconds."""
    found = _DURATION.fullmatch(text)
    units = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
    if found is None or not any(found[name] for name in units):
        raise UsageRefused(f"--by-duration {text!r} is not of the form P1DT2H30M")
    total = sum(float(found[name] or 0) * ms for name, ms in units.items())
    return round(-total if found["sign"] == "-" else total)
