"""What differs? Set against default, broker against broker, topic against topic."""

import msgspec

from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.aio.client import Client
from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.config_diff import differences
from ottla.insight.wording import counted, joined
from ottla.wire.apis.describe_configs import DescribeConfigsResourceResult

DEFAULT_SOURCE = 5
ROWS_SHOWN = 100
ASK_MS_MAX = 6_000
BY_NATURE = frozenset({"broker.id", "listeners", "advertised.listeners", "log.dir", "log.dirs", "broker.rack",
                       "ottla.metrics.listener", "node.id", "port", "host.name"})  # fmt: skip
"""What every broker has of its own."""
HIDDEN = "hidden"


class SetRow(msgspec.Struct, frozen=True):
    """One setting that somebody set."""

    kind: str
    of: str
    name: str
    value: str
    default: str
    may_change: bool


class DifferenceRow(msgspec.Struct, frozen=True):
    """One setting that is not the same on all brokers."""

    name: str
    values: dict[str, str]


class ConfigsPage(msgspec.Struct, frozen=True):
    """All that differs."""

    frame: Frame
    search: str
    sentence: str
    mood: str
    brokers: list[str]
    between: list[DifferenceRow]
    rows: list[SetRow]
    rows_more: int


async def configs_page(world: World, client: Client, search: str) -> ConfigsPage:
    """Asks each live broker for its settings; those of topics are in the picture."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    brokers = [(ResourceType.BROKER, str(number)) for number in sorted(picture.live)]
    world.requests += len(brokers)
    asked = await client.run(describe_configs, brokers, include_synonyms=True, timeout_ms=ASK_MS_MAX)
    found = {row.resource_name: {one.name: one for one in row.configs} for row in asked if not row.error_code}
    sides = {number: {name: _value(one) for name, one in held.items()} for number, held in found.items()}
    between = [DifferenceRow(row.name, row.values) for row in differences(sides, but=BY_NATURE)]
    held_by: dict[tuple[str, str, str, bool], list[str]] = {}
    for number, held in found.items():
        for one in held.values():
            if one.config_source != DEFAULT_SOURCE and _value(one) != _default(one):
                row = (one.name, _value(one), _default(one), not one.read_only)
                held_by.setdefault(row, []).append(number)
    rows = [SetRow("broker", joined(by), *row) for row, by in sorted(held_by.items())]
    rows += [
        SetRow("topic", topic, name, value, "", True)
        for topic, seen in sorted(picture.topics.items())
        for name, value in sorted(seen.configs.items())
    ]
    words = search.lower().split()
    rows = [row for row in rows if all(word in f"{row.kind} {row.of} {row.name}".lower() for word in words)]
    if between:
        sentence = f"{counted(len(between), 'setting')} differ from broker to broker."
    else:
        sentence = "All brokers have the same settings."
    return ConfigsPage(
        frame_of(world, "Settings", "ottla configs --describe --entity-type brokers"),
        search,
        sentence.replace("1 setting differ ", "1 setting differs "),
        "warn" if between else "good",
        sorted(found, key=int),
        between,
        rows[:ROWS_SHOWN],
        max(0, len(rows) - ROWS_SHOWN),
    )


def _value(row: DescribeConfigsResourceResult) -> str:
    return HIDDEN if row.is_sensitive else row.value or ""


def _default(row: DescribeConfigsResourceResult) -> str:
    return next((one.value or "" for one in row.synonyms if one.source == DEFAULT_SOURCE), "")
