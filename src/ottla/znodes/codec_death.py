"""Ottla's own znode of a broker's death: what its guard wrote before it closed the session."""

import msgspec

from ottla.znodes.codec import read_json


class Death(msgspec.Struct, frozen=True):
    """How a process ended, in words, and the broker epoch of that life."""

    epoch: int
    words: str


def decode_death(data: bytes | None) -> Death:
    """``MalformedZnode`` when it is something else."""
    return read_json(data, Death, "death")
