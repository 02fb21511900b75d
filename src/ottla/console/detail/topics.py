"""All topics, a hundred at a time; and one of them."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.overview import WORST_FIRST, trouble

ROWS_SHOWN = 100


class TopicRow(msgspec.Struct, frozen=True):
    """One topic."""

    topic: str
    partitions: int
    factor: int
    bytes: int
    kind: str
    """The worst that is to be said of one of its partitions."""
    is_internal: bool


class TopicsPage(msgspec.Struct, frozen=True):
    """A cut of the table."""

    frame: Frame
    search: str
    first: int
    found: int
    rows: list[TopicRow]
    before: int | None
    after: int | None


class PartRow(msgspec.Struct, frozen=True):
    """One partition of the topic."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    bytes: int
    kind: str
    words: str


class TopicPage(msgspec.Struct, frozen=True):
    """One topic."""

    frame: Frame
    topic: str
    topic_id: str
    is_internal: bool
    min_isr: int
    bytes: int
    settings: dict[str, str]
    count: int
    rows: list[PartRow]
    rows_more: int


def topics_page(world: World, search: str, first: int) -> TopicsPage:
    """Those whose name holds the words."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    words = search.lower().split()
    sizes: dict[str, int] = {}
    for (name, _), size in world.sizes.items():
        sizes[name.topic] = sizes.get(name.topic, 0) + size
    parts: dict[str, list[tuple[int, str]]] = {topic: [] for topic in picture.topics}
    for name, seen in picture.partitions.items():
        kind, _ = trouble(seen, picture.topics[name.topic].min_isr, picture.live)
        parts[name.topic].append((seen.replication_factor, kind))
    found = [name for name in sorted(parts) if all(word in name.lower() for word in words)]
    first = max(0, min(first, len(found) - 1))
    rows = []
    for topic in found[first : first + ROWS_SHOWN]:
        kinds = {kind for _, kind in parts[topic]}
        rows.append(
            TopicRow(
                topic,
                len(parts[topic]),
                max((factor for factor, _ in parts[topic]), default=0),
                sizes.get(topic, 0),
                next((kind for kind in WORST_FIRST if kind in kinds), ""),
                picture.topics[topic].is_internal,
            )
        )
    return TopicsPage(
        frame_of(world, "Topics", "ottla topics --list"),
        search,
        first,
        len(found),
        rows,
        max(0, first - ROWS_SHOWN) if first else None,
        first + ROWS_SHOWN if first + ROWS_SHOWN < len(found) else None,
    )


def topic_page(world: World, topic: str) -> TopicPage | None:
    """One topic, or ``None`` where there is none of the name."""
    picture = world.picture
    seen = None if picture is None else picture.topics.get(topic)
    if picture is None or seen is None:
        return None
    rows = []
    for name, part in sorted(picture.partitions.items()):
        if name.topic == topic:
            kind, words = trouble(part, seen.min_isr, picture.live)
            leader = part.leader if part.leader in picture.live else -1
            size = sum(world.sizes.get((name, broker), 0) for broker in part.replicas)
            rows.append(
                PartRow(name.partition, leader, list(part.replicas), list(part.isr), size, kind, words)
            )
    return TopicPage(
        frame_of(world, topic, f"ottla topics --describe --topic {topic}"),
        topic,
        seen.topic_id.hex(),
        seen.is_internal,
        seen.min_isr,
        sum(row.bytes for row in rows),
        dict(sorted(seen.configs.items())),
        len(rows),
        rows[:ROWS_SHOWN],
        max(0, len(rows) - ROWS_SHOWN),
    )
