"""Is it safe to take a broker down? Every partition is asked, by the controller's own rules."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.leaving import Leaving, may_leave
from ottla.insight.wording import counted

OBJECTIONS_SHOWN = 100


class ObjectionRow(msgspec.Struct, frozen=True):
    """A partition that says no, or would have nothing to spare."""

    topic: str
    partition: int
    kind: str
    why: str


class Heir(msgspec.Struct, frozen=True):
    """A broker that would take over leaderships."""

    broker: int
    takes: int
    leads_now: int


class LeavePage(msgspec.Struct, frozen=True):
    """The answer, and the partitions that say no."""

    frame: Frame
    broker: int
    how: str
    verdict: str
    sentence: str
    is_controller: bool
    replicas: int
    leaders: int
    group_coordinators: int
    transaction_coordinators: int
    counts: dict[str, int]
    heirs: list[Heir]
    objections: list[ObjectionRow]
    objections_more: int
    notes: list[str]


def leave_page(world: World, broker: int, *, crash: bool) -> LeavePage | None:
    """The page, or ``None`` of a broker that is neither alive nor holds anything."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    leaving = may_leave(picture, broker, crash=crash)
    if not leaving.is_alive and not leaving.replicas:
        return None
    leads = dict.fromkeys(picture.brokers, 0)
    for seen in picture.partitions.values():
        if seen.leader in leads:
            leads[seen.leader] += 1
    rows = []
    for said in leaving.objections[:OBJECTIONS_SHOWN]:
        topic, _, number = said.partition.rpartition("-")
        rows.append(ObjectionRow(topic, int(number), said.kind, said.why))
    return LeavePage(
        frame_of(world, f"May broker {broker} leave?", f"ottla drain {broker} --dry-run"),
        broker,
        "crash" if crash else "stop",
        leaving.verdict,
        leaving.sentence(),
        leaving.is_controller,
        leaving.replicas,
        leaving.leaders,
        leaving.group_coordinators,
        leaving.transaction_coordinators,
        dict(leaving.counts),
        [Heir(number, count, leads.get(number, 0)) for number, count in leaving.goes_to.most_common()],
        rows,
        max(0, len(leaving.objections) - OBJECTIONS_SHOWN),
        _notes(leaving),
    )


def _notes(leaving: Leaving) -> list[str]:
    """What else would move."""
    notes = []
    if leaving.is_controller:
        notes.append("It is the controller: another broker would take office.")
    if leaving.group_coordinators:
        notes.append(
            f"Groups on {counted(leaving.group_coordinators, 'partition')} of __consumer_offsets would get"
            " another coordinator: their consumers reconnect."
        )
    if leaving.transaction_coordinators:
        notes.append(
            f"Transactions on {counted(leaving.transaction_coordinators, 'partition')} of"
            " __transaction_state would get another coordinator."
        )
    return notes
