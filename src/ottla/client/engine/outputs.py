"""The engine's outputs. The edge takes and performs them after every call into the engine."""

from dataclasses import dataclass
from typing import TypeAlias

from ottla.wire.primitives import Buffer


@dataclass(frozen=True, slots=True)
class OpenLink:
    """Connect; ``link_connected`` or ``link_lost`` answers."""

    link: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class SendOnLink:
    """Send these bytes; the edge keeps what the socket does not take at once."""

    link: int
    parts: list[Buffer]


@dataclass(frozen=True, slots=True)
class CloseLink:
    """Close at once; no ``link_lost`` follows."""

    link: int


Output: TypeAlias = OpenLink | SendOnLink | CloseLink
