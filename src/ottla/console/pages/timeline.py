"""What happened, and when: incidents by cause, with a lane for each broker."""

from datetime import UTC, datetime, timedelta

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.history.timeline import Incident
from ottla.insight.wording import time_text

ROWS_SHOWN = 100
NAMED = 50
WIDTH, LANE, LEFT = 1000, 36, 90


class Moved(msgspec.Struct, frozen=True):
    """Leaderships that went from one broker to another; -1 is nobody."""

    from_: int = msgspec.field(name="from")
    to: int
    count: int


class Row(msgspec.Struct, frozen=True):
    """One incident."""

    number: int
    began: str
    began_ms: int
    ended_ms: int
    cause: str
    sentence: str
    weight: str
    controller: int
    controller_epoch: int
    elections: int
    unclean: int
    isr_changes: int
    left_without_leader: int
    without_leader_ms_max: int
    rules: dict[str, int]
    moves: list[Moved]
    partitions: list[str]
    partitions_more: int


class Mark(msgspec.Struct, frozen=True):
    """An incident as drawn: at x, from one lane to others."""

    number: int
    x: float
    top: float
    bottom: float
    weight: str
    label: str
    losers: list[float]
    winners: list[float]


class Lane(msgspec.Struct, frozen=True):
    """One broker's line."""

    broker: int
    y: float
    is_alive: bool


class Tick(msgspec.Struct, frozen=True):
    """A time on the axis."""

    x: float
    text: str


class Drawing(msgspec.Struct, frozen=True):
    """The incidents over the brokers' lanes."""

    width: int
    height: int
    lanes: list[Lane]
    ticks: list[Tick]
    marks: list[Mark]


class TimelinePage(msgspec.Struct, frozen=True):
    """The heart of the console."""

    frame: Frame
    from_: str = msgspec.field(name="from")
    to: str
    shown: int
    found: int
    drawing: Drawing
    incidents: list[Row]
    problem: str | None = None


def timeline_page(world: World, from_text: str, to_text: str, now: datetime) -> TimelinePage:
    """Incidents between two times, which may be left out; ``14:02`` is one of the last 24 hours, in UTC."""
    problem = None
    try:
        from_ms, to_ms = read_time(from_text, now), read_time(to_text, now)
    except ValueError as error:
        problem, from_ms, to_ms = str(error), None, None
    found = world.timeline.between(from_ms, to_ms)
    shown = found[:ROWS_SHOWN]
    return TimelinePage(
        frame_of(world, "Timeline", "ottla explain TOPIC-PARTITION"),
        from_text,
        to_text,
        len(shown),
        len(found),
        drawn(world, shown, from_ms, to_ms),
        [row_of(incident) for incident in shown],
        problem,
    )


def read_time(text: str, now: datetime) -> int | None:
    """``14:02``, ``14:02:30`` or ``2026-11-18T14:02`` in UTC, as milliseconds; ``None`` of no text."""
    text = text.strip()
    if not text:
        return None
    try:
        if "-" in text:
            return _ms(datetime.fromisoformat(text.replace("Z", "+00:00")))
        clock = datetime.strptime(text, "%H:%M:%S" if text.count(":") == 2 else "%H:%M")  # noqa: DTZ007
    except ValueError:
        raise ValueError(f"{text!r} is no time; write 14:02, 14:02:30 or 2026-11-18T14:02 (UTC)") from None
    moment = now.astimezone(UTC).replace(
        hour=clock.hour, minute=clock.minute, second=clock.second, microsecond=0
    )
    return _ms(moment if moment <= now else moment - timedelta(days=1))


def _ms(moment: datetime) -> int:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def row_of(incident: Incident) -> Row:
    """An incident as it is shown."""
    return Row(
        incident.number,
        time_text(incident.began_ms),
        incident.began_ms,
        incident.ended_ms,
        incident.cause,
        incident.sentence(),
        incident.weight,
        incident.controller,
        incident.controller_epoch,
        incident.elections,
        incident.unclean,
        incident.isr_changes,
        incident.left_without_leader,
        incident.without_leader_ms_max,
        dict(incident.rules),
        [Moved(a, b, count) for (a, b), count in incident.moves.most_common()],
        incident.partitions[:NAMED],
        max(0, len(set(incident.partitions)) - NAMED),
    )


def drawn(world: World, incidents: list[Incident], from_ms: int | None, to_ms: int | None) -> Drawing:
    """Where each incident lies; two that would fall onto each other stay in their order."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    known = {broker for incident in incidents for pair in incident.moves for broker in pair if broker >= 0}
    brokers = sorted(known | picture.live)
    lanes = {
        broker: Lane(broker, LANE * (place + 0.75), broker in picture.live)
        for place, broker in enumerate(brokers)
    }
    height = LANE * len(lanes) + 40
    start = from_ms or min((incident.began_ms for incident in incidents), default=0)
    end = to_ms or max((incident.ended_ms for incident in incidents), default=start + 1)
    margin = max(1_000, (end - start) // 50)
    start, end = start - margin, end + margin

    def x(time_ms: int) -> float:
        return round(LEFT + (WIDTH - LEFT - 20) * (time_ms - start) / (end - start), 1)

    marks = []
    for incident in reversed(incidents):
        losers = sorted({lanes[a].y for (a, _) in incident.moves if a in lanes})
        winners = sorted({lanes[b].y for (_, b) in incident.moves if b in lanes})
        rows = [*losers, *winners] or [
            lane.y for lane in lanes.values() if lane.broker == incident.controller
        ]
        if rows:
            label = f"{time_text(incident.began_ms)[11:]} {incident.cause}: {incident.sentence()}"
            marks.append(
                Mark(
                    incident.number,
                    x(incident.began_ms),
                    min(rows),
                    max(rows),
                    incident.weight,
                    label,
                    losers,
                    winners,
                )
            )
    ticks = [
        Tick(x(at), time_text(at)[11:19])
        for at in (start + (end - start) * part // 12 for part in (1, 4, 7, 10))
    ]
    return Drawing(WIDTH, height, list(lanes.values()), ticks if incidents else [], marks)
