"""What every page has around it."""

import msgspec

from ottla.console.read.world import World
from ottla.insight.wording import duration_text

OLD_S = 10.0
"""A picture that is older says so in words."""


class Frame(msgspec.Struct, frozen=True):
    """Of which cluster, how old, and whether it can be trusted."""

    title: str
    command: str
    """What to type for the same in a terminal."""
    number: int
    cluster_id: str
    controller: int
    controller_epoch: int | None
    age_s: float
    trouble: str | None
    has_history: bool
    brokers: list[int]

    @property
    def warning(self) -> str | None:
        """What is wrong with the picture itself."""
        age = duration_text(self.age_s)
        if self.trouble is not None:
            return f"The brokers do not answer ({self.trouble}). This is the picture of {age} ago."
        if self.age_s > OLD_S:
            return f"This picture is {age} old."
        return None


def frame_of(world: World, title: str, command: str) -> Frame:
    """The frame of a page; a world that was never seen has no picture to be in it."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    return Frame(
        title,
        command,
        world.number,
        picture.cluster_id,
        picture.controller,
        picture.controller_epoch,
        round(world.age_s, 1),
        world.trouble,
        bool(world.has_history),
        sorted(picture.brokers),
    )
