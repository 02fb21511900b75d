"""Is all well? Brokers, what is wrong, what happened last."""

from typing import Annotated

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.pages.timeline import Row, row_of
from ottla.console.read.world import World
from ottla.insight.overview import broker_lines, overview
from ottla.insight.survival import survival

TROUBLES_SHOWN = 100
INCIDENTS_SHOWN = 8


class BrokerRow(msgspec.Struct, frozen=True):
    """One broker; without an address it is not alive."""

    broker: int
    address: str | None
    rack: str | None
    leads: int
    preferred: int
    replicas: int
    in_sync: int
    share: Annotated[float, "Of the leaders, against the broker that has most: 0 to 1."]
    is_controller: bool


class TroubleRow(msgspec.Struct, frozen=True):
    """One partition that is not as it should be."""

    topic: str
    partition: int
    kind: str
    words: str


class OverviewPage(msgspec.Struct, frozen=True):
    """The first page."""

    frame: Frame
    sentence: str
    mood: str
    health: str
    topics: int
    partitions: int
    counts: dict[str, int]
    brokers: list[BrokerRow]
    troubles: list[TroubleRow]
    incidents: list[Row]


def overview_page(world: World) -> OverviewPage:
    """From the picture alone."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    seen = overview(picture)
    safe = survival(picture)
    troubles = []
    kinds = [kind for kind, count in seen.counts.items() for _ in range(count)]
    for (name, words), kind in zip(list(seen.troubles.items())[:TROUBLES_SHOWN], kinds, strict=False):
        topic, _, number = name.rpartition("-")
        troubles.append(TroubleRow(topic, int(number), kind, words))
    return OverviewPage(
        frame_of(world, "Overview", "ottla describe"),
        safe.sentence(),
        safe.mood,
        seen.health(),
        len(picture.topics),
        seen.partitions,
        seen.counts,
        broker_rows(world),
        troubles,
        [row_of(incident) for incident in world.timeline.between(None, None)[:INCIDENTS_SHOWN]],
    )


def broker_rows(world: World) -> list[BrokerRow]:
    """What each broker does."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    lines = broker_lines(picture)
    most = max((row.leads for row in lines), default=0) or 1
    return [
        BrokerRow(
            row.number,
            row.address,
            row.rack,
            row.leads,
            row.preferred,
            row.replicas,
            row.in_sync,
            round(row.leads / most, 3),
            row.number == picture.controller,
        )
        for row in lines
    ]
