"""Why is the leader there? One partition: now, history, candidates, what if, replicas side by side."""

from typing import Any

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.history.losses import losses
from ottla.insight.history.records import is_told, weight_of
from ottla.insight.history.story import now_lines, paragraphs, preferred
from ottla.insight.overview import trouble
from ottla.insight.picture import TopicSeen
from ottla.insight.what_if import what_if
from ottla.insight.wording import size_text, time_text
from ottla.model.ids import TopicPartition

EVENTS_SHOWN = 100


class ReplicaRow(msgspec.Struct, frozen=True):
    """One replica."""

    broker: int
    state: str
    is_alive: bool
    in_sync: bool
    is_preferred: bool
    size: str
    bytes: int | None
    if_it_died: str


class Candidate(msgspec.Struct, frozen=True):
    """Who could have been elected, and what spoke for and against it."""

    broker: int
    online: bool
    in_sync: bool
    chosen: bool


class Event(msgspec.Struct, frozen=True):
    """One record of the history."""

    time: str
    time_ms: int
    headline: str
    lines: list[str]
    weight: str
    candidates: list[Candidate]


class LossRow(msgspec.Struct, frozen=True):
    """What an unclean election cost; ``None`` is unknown, ``until`` is exclusive."""

    leader_epoch: int
    start: int | None
    until: int | None
    cut_by: int | None


class PartitionPage(msgspec.Struct, frozen=True):
    """One partition."""

    frame: Frame
    partition: str
    topic: str
    number: int
    headline: str
    lines: list[str]
    trouble: str
    leader: int
    leader_epoch: int
    isr: list[int]
    preferred: str
    is_told: bool
    min_isr: int
    replicas: list[ReplicaRow]
    events: list[Event]
    events_more: int
    losses: list[LossRow]


def partition_page(world: World, name: TopicPartition, *, with_isr: bool) -> PartitionPage | None:
    """The page, or ``None`` where there is no such partition."""
    picture = world.picture
    now = None if picture is None else picture.now(name)
    if picture is None or now is None:
        return None
    history = world.history_of(name)
    seen = picture.partitions[name]
    topic = picture.topics.get(name.topic) or TopicSeen(name.topic)
    headline, *lines = now_lines(now, history)
    answers = what_if(now)
    replicas = [
        ReplicaRow(
            broker,
            _state(broker, seen.leader, seen.isr, picture.live, seen.adding),
            broker in picture.live,
            broker in seen.isr,
            place == 0,
            size_text(size) if (size := world.sizes.get((name, broker))) is not None else "–",
            size,
            answers[broker],
        )
        for place, broker in enumerate(seen.replicas)
    ]
    events = _events(history, with_isr=with_isr)
    return PartitionPage(
        frame_of(world, str(name), f"ottla explain {name}"),
        str(name),
        name.topic,
        name.partition,
        headline,
        [line.strip() for line in lines],
        trouble(seen, topic.min_isr, picture.live)[1],
        seen.leader,
        seen.leader_epoch,
        list(seen.isr),
        preferred(now),
        is_told(now, history),
        topic.min_isr,
        replicas,
        events[:EVENTS_SHOWN],
        max(0, len(events) - EVENTS_SHOWN),
        [LossRow(loss.leader_epoch, loss.start, loss.until, loss.cut_by) for loss in losses(history)],
    )


def _state(
    broker: int, leader: int, isr: tuple[int, ...], live: frozenset[int], adding: tuple[int, ...]
) -> str:
    if broker not in live:
        return "offline"
    if broker == leader:
        return "leader"
    if broker in isr:
        return "in sync"
    return "being added" if broker in adding else "behind"


def _events(history: list[dict[str, Any]], *, with_isr: bool) -> list[Event]:
    """The paragraphs that ``ottla explain`` prints, newest first, with their candidates as a table."""
    events = []
    for row, paragraph in paragraphs(history, with_isr=with_isr):
        stamp = time_text(row["time_ms"])
        lines = [line.strip() for line in paragraph]
        heads = [line.removeprefix(stamp).strip() for line in lines if line.startswith(stamp)]
        rest = [line for line in lines if not line.startswith((stamp, "candidates:"))]
        events.append(
            Event(
                stamp,
                row["time_ms"],
                heads[0] if heads else "",
                rest,
                weight_of(row),
                [
                    Candidate(c["broker"], c["online"], c["in_sync"], c["broker"] == row.get("chosen"))
                    for c in row.get("candidates", ())
                ],
            )
        )
    return events[::-1]
