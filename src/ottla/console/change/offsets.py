"""Put a group's offsets elsewhere, while none of its members runs."""

from collections.abc import Iterable
from datetime import UTC, datetime
from shlex import quote

from ottla.client.admin.groups import alter_group_offsets, describe_group, list_group_offsets
from ottla.client.fetching.offsets import list_offsets
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
from ottla.console.pages.timeline import read_time
from ottla.insight.wording import counted
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST

START, END, OFFSET, SHIFT, TIME = "the start", "the end", "an offset", "so many on (or back: -5)", "a time"
FLAGS = {
    START: "--to-earliest",
    END: "--to-latest",
    OFFSET: "--to-offset",
    SHIFT: "--shift-by",
    TIME: "--to-datetime",
}
MOST = 2**63 - 1
Offsets = dict[TopicPartition, int]


async def _plan(at: At, filled: Filled) -> Plan:
    group, to = filled["group"], filled["to"]
    state = (await at.client.run(describe_group, group)).group_state
    if state not in ("Empty", "Dead"):
        raise CannotAct(f"Group {group} has running members (it is {state}): stop its consumers first.")
    committed = {
        name: row.committed_offset
        for name, row in (await at.client.run(list_group_offsets, group)).items()
        if row.committed_offset >= 0
    }
    topic = filled.get("topic", "").strip()
    scope = (
        sorted(name for name in at.picture.partitions if name.topic == topic) if topic else sorted(committed)
    )
    if not scope:
        raise CannotAct(
            f"There is no topic {topic}." if topic else f"Group {group} has no offsets; name a topic."
        )
    if lost := [name for name in scope if (seen := at.picture.now(name)) is None or not seen.has_leader]:
        raise CannotAct(f"{lost[0]} has no leader, so its offsets are not known.")
    wanted = await _wanted(at, to, filled, scope, committed)
    changed = {name: offset for name, offset in wanted.items() if committed.get(name) != offset}
    if not changed:
        return Plan("All offsets are there already.")

    async def work() -> list[Outcome]:
        new = await _at(at, changed, LATEST) if to == END else changed
        done = await at.client.run(alter_group_offsets, group, new)
        return [outcome(str(name), code, None, f"at {new[name]}") for name, code in sorted(done.items())]

    rows = [
        Change(
            str(name),
            str(committed.get(name, "none")),
            END if to == END else str(offset),
            f"/partitions/{name.topic}/{name.partition}",
        )
        for name, offset in changed.items()
    ]
    sentence = f"Group {group} would go on elsewhere in {counted(len(rows), 'partition')}."
    return Plan(sentence, work, rows, state=state)


async def _wanted(
    at: At, to: str, filled: Filled, scope: list[TopicPartition], committed: Offsets
) -> Offsets:
    match to:
        case str() if to == START:
            return await _at(at, scope, EARLIEST)
        case str() if to == END:
            return await _at(at, scope, LATEST)
        case str() if to == OFFSET:
            return await _inside(at, dict.fromkeys(scope, number_in(filled, "value", "An offset", 0, MOST)))
        case str() if to == SHIFT:
            by = number_in(filled, "value", "The shift", -MOST, MOST)
            if missing := [name for name in scope if name not in committed]:
                raise CannotAct(f"The group has no offset of {missing[0]} that could be shifted.")
            return await _inside(at, {name: committed[name] + by for name in scope})
        case str() if to == TIME:
            found = await _at(at, scope, _time_ms(filled.get("value", "")))
            late = [name for name, offset in found.items() if offset < 0]
            return {**found, **(await _at(at, late, LATEST) if late else {})}
        case _:
            raise CannotAct(f"{to!r} is no place to go.")


async def _at(at: At, names: Iterable[TopicPartition], where: int) -> Offsets:
    found = await at.client.run(list_offsets, dict.fromkeys(names, where))
    return {name: row.offset for name, row in found.items()}


async def _inside(at: At, wanted: Offsets) -> Offsets:
    """The nearer end of the log where an offset lies outside."""
    low, high = await _at(at, wanted, EARLIEST), await _at(at, wanted, LATEST)
    return {name: min(max(offset, low[name]), high[name]) for name, offset in wanted.items()}


def _time_ms(text: str) -> int:
    try:
        found = read_time(text, datetime.now(UTC))
    except ValueError as error:
        raise CannotAct(f"{error}.") from None
    if found is None:
        raise CannotAct("A time is needed: write 14:02, 14:02:30 or 2026-11-18T14:02 (UTC).")
    return found


def _command(filled: Filled) -> str:
    to = filled.get("to") or START
    value = f" {quote(filled.get('value') or 'VALUE')}" if to in (OFFSET, SHIFT, TIME) else ""
    topic = f"--topic {quote(filled['topic'])}" if filled.get("topic") else "--all-topics"
    group = quote(filled.get("group") or "NAME")
    return (
        f"ottla consumer-groups --reset-offsets --group {group} {topic} {FLAGS.get(to, '')}{value} --dry-run"
    )


RESET = Act(
    "groups",
    "/groups/offsets",
    "Put a group's offsets elsewhere",
    "Put them there",
    (
        Field("group", "Group"),
        Field("topic", "Topic", hint="empty: all that it has offsets of", is_needed=False),
        Field("to", "To", "choice", "", tuple(FLAGS)),
        Field("value", "Offset, count or time", hint="where the choice needs one", is_needed=False),
    ),
    _plan,
    _command,
    does_harm=True,
)
