"""Is the console right? The age of its picture, what it asks, which brokers do not answer, what it may do."""

import importlib.metadata
from collections.abc import Collection
from pathlib import Path

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World

STATUS = Path("/proc/self/status")


class AboutPage(msgspec.Struct, frozen=True):
    """The console itself."""

    frame: Frame
    version: str
    memory_mb: float | None
    requests: int
    """Sent since the start, records of decisions not counted."""
    silent: list[int]
    """Brokers that hold replicas and are not alive."""
    has_history: bool
    next_record: int | None
    allowed: list[str]
    shows_records: bool


def about_page(world: World, allowed: Collection[str], *, shows_records: bool) -> AboutPage:
    """From the world, and from this process."""
    picture = world.picture
    assert picture is not None, "pages are made after the first look"
    held = {broker for row in picture.partitions.values() for broker in row.replicas}
    return AboutPage(
        frame_of(world, "About", "ottla status"),
        importlib.metadata.version("ottla"),
        memory_mb(),
        world.requests,
        sorted(held - picture.live),
        bool(world.has_history),
        world.next_record,
        sorted(allowed),
        shows_records,
    )


def memory_mb() -> float | None:
    """Of this process now, where the system tells."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), None)
