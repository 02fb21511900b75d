"""Where is the skew? Each broker's part against the even share."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.skew import skew_of
from ottla.insight.wording import counted

VIOLATIONS_SHOWN = 100


class ShareRow(msgspec.Struct, frozen=True):
    """One broker's part."""

    broker: int
    rack: str | None
    leaders: int
    preferred: int
    replicas: int
    bytes: int | None


class BalancePage(msgspec.Struct, frozen=True):
    """The parts, what would be even, and what stands in the way."""

    frame: Frame
    sentence: str
    mood: str
    rows: list[ShareRow]
    leaders_even: float
    replicas_even: float
    bytes_even: float | None
    leaders_most: int
    replicas_most: int
    bytes_most: int
    not_preferred: int
    racks_violated: list[str]
    racks_violated_more: int


def balance_page(world: World) -> BalancePage:
    """From the picture, and from the sizes that were read last."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    skew = skew_of(picture, world.sizes or None)
    rows = [
        ShareRow(part.broker, part.rack, part.leaders, part.preferred, part.replicas, part.bytes)
        for part in skew.shares
    ]
    most = max(rows, key=lambda row: row.leaders, default=None)
    is_even = most is None or most.leaders - skew.leaders_even <= 1
    mood = "warn" if skew.racks_violated or skew.not_preferred or not is_even else "good"
    return BalancePage(
        frame_of(world, "Balance", "ottla describe"),
        _sentence(
            skew.not_preferred, len(skew.racks_violated), None if is_even else most, skew.leader_skew()
        ),
        mood,
        rows,
        round(skew.leaders_even, 1),
        round(skew.replicas_even, 1),
        None if skew.bytes_even is None else round(skew.bytes_even, 1),
        max((row.leaders for row in rows), default=0),
        max((row.replicas for row in rows), default=0),
        max((row.bytes or 0 for row in rows), default=0),
        skew.not_preferred,
        skew.racks_violated[:VIOLATIONS_SHOWN],
        max(0, len(skew.racks_violated) - VIOLATIONS_SHOWN),
    )


def _sentence(not_preferred: int, violated: int, most: ShareRow | None, skew: float) -> str:
    said = []
    if most is not None:
        said.append(f"broker {most.broker} leads {skew:.0%} more than an even share")
    if not_preferred:
        said.append(f"{counted(not_preferred, 'leadership')} could go back to the preferred leader")
    if violated:
        have = "has" if violated == 1 else "have"
        said.append(f"{counted(violated, 'partition')} {have} two replicas in one rack")
    text = "; ".join(said) or "leaders are even, and every preferred leader that can lead leads"
    return text[0].upper() + text[1:] + "."
