"""The brokers; and one of them, with its part of everything."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.pages.overview import BrokerRow, broker_rows
from ottla.console.read.world import World
from ottla.insight.overview import trouble
from ottla.insight.wording import counted

ROWS_SHOWN = 100


class BrokersPage(msgspec.Struct, frozen=True):
    """All that are alive or hold replicas."""

    frame: Frame
    sentence: str
    mood: str
    rows: list[BrokerRow]


class HeldRow(msgspec.Struct, frozen=True):
    """One replica on the broker that is not as it should be."""

    topic: str
    partition: int
    kind: str
    words: str


class BrokerPage(msgspec.Struct, frozen=True):
    """One broker."""

    frame: Frame
    row: BrokerRow
    sentence: str
    mood: str
    bytes: int
    behind: int
    troubles: list[HeldRow]
    troubles_more: int


def brokers_page(world: World) -> BrokersPage:
    """From the picture."""
    rows = broker_rows(world)
    gone = [row.broker for row in rows if row.address is None]
    sentence = f"{counted(len(rows) - len(gone), 'broker')} alive"
    if gone:
        sentence += f"; not alive, though replicas are there: {', '.join(map(str, gone))}"
    mood = "bad" if gone else "good"
    return BrokersPage(frame_of(world, "Brokers", "ottla describe"), f"{sentence}.", mood, rows)


def broker_page(world: World, broker: int) -> BrokerPage | None:
    """One broker, or ``None`` of one that is neither alive nor holds anything."""
    picture = world.picture
    row = next((row for row in broker_rows(world) if row.broker == broker), None)
    if picture is None or row is None:
        return None
    troubles = []
    for name, seen in sorted(picture.partitions.items()):
        if broker in seen.replicas:
            kind, words = trouble(seen, picture.topics[name.topic].min_isr, picture.live)
            if kind:
                troubles.append(HeldRow(name.topic, name.partition, kind, words))
    behind = row.replicas - row.in_sync
    if row.address is None:
        sentence, mood = f"Broker {broker} is not alive.", "bad"
    elif behind:
        sentence, mood = f"{counted(behind, 'replica')} of broker {broker} are not in sync.", "warn"
    else:
        sentence, mood = f"Broker {broker} is alive, and all its replicas are in sync.", "good"
    return BrokerPage(
        frame_of(
            world,
            f"Broker {broker}",
            f"ottla configs --describe --entity-type brokers --entity-name {broker}",
        ),
        row,
        sentence,
        mood,
        sum(size for (_, holder), size in world.sizes.items() if holder == broker),
        behind,
        troubles[:ROWS_SHOWN],
        max(0, len(troubles) - ROWS_SHOWN),
    )
