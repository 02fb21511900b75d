"""The whole map: a cell a replica, brokers across, partitions down; drawn from one packed array."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World

NONE, LEADER, IN_SYNC, BEHIND, OFFLINE, ADDED = range(6)
STATES = ("none", "leader", "in sync", "behind", "offline", "being added")


class ReplicasPage(msgspec.Struct, frozen=True):
    """The counts; the cells are in the packed array under the same address with ``.bin``."""

    frame: Frame
    partitions: int
    replicas: int
    counts: dict[str, int]
    states: list[str]


class Map(msgspec.Struct, frozen=True):
    """The cells: a byte each, row by row; a row is a partition, a column a broker."""

    brokers: list[int]
    names: list[str]
    cells: bytes


def packed(world: World) -> Map:
    """The map as the page's script reads it: for 10,000 partitions and three brokers 30,000 bytes."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    held = {broker for seen in picture.partitions.values() for broker in seen.replicas}
    brokers = sorted(held | picture.live)
    place = {broker: column for column, broker in enumerate(brokers)}
    width, live = len(brokers), picture.live
    cells = bytearray(width * len(picture.partitions))
    names = sorted(picture.partitions)
    for row, name in enumerate(names):
        seen = picture.partitions[name]
        at = row * width
        for broker in seen.replicas:
            if broker not in live:
                state = OFFLINE
            elif broker == seen.leader:
                state = LEADER
            elif broker in seen.isr:
                state = IN_SYNC
            else:
                state = ADDED if broker in seen.adding else BEHIND
            cells[at + place[broker]] = state
    return Map(brokers, [str(name) for name in names], bytes(cells))


def replicas_page(world: World) -> ReplicasPage:
    """How many replicas are in each state."""
    cells = packed(world).cells
    counts = {name: cells.count(state) for state, name in enumerate(STATES) if state != NONE}
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    return ReplicasPage(
        frame_of(world, "Replica map", "ottla topics --describe"),
        len(picture.partitions),
        sum(counts.values()),
        counts,
        list(STATES),
    )
