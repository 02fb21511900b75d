"""All partitions, a hundred at a time: searched and narrowed on the server."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.overview import WORST_FIRST, trouble

ROWS_SHOWN = 100


class PartitionRow(msgspec.Struct, frozen=True):
    """One partition."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    kind: str
    words: str


class PartitionsPage(msgspec.Struct, frozen=True):
    """A cut of the table."""

    frame: Frame
    search: str
    kind: str
    kinds: list[str]
    first: int
    found: int
    rows: list[PartitionRow]
    before: int | None
    after: int | None


def partitions_page(world: World, search: str, kind: str, first: int) -> PartitionsPage:
    """Those whose name holds the words and whose trouble is of the kind."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    words = search.lower().split()
    rows = []
    for name, seen in sorted(picture.partitions.items()):
        if any(word not in str(name).lower() for word in words):
            continue
        found, said = trouble(seen, picture.topics[name.topic].min_isr, picture.live)
        if kind and found != kind:
            continue
        rows.append(
            PartitionRow(
                name.topic,
                name.partition,
                seen.leader if seen.leader in picture.live else -1,
                seen.leader_epoch,
                list(seen.replicas),
                list(seen.isr),
                found,
                said,
            )
        )
    first = max(0, min(first, len(rows) - 1))
    return PartitionsPage(
        frame_of(world, "Partitions", "ottla topics --describe"),
        search,
        kind,
        list(WORST_FIRST),
        first,
        len(rows),
        rows[first : first + ROWS_SHOWN],
        max(0, first - ROWS_SHOWN) if first else None,
        first + ROWS_SHOWN if first + ROWS_SHOWN < len(rows) else None,
    )
