"""Long work a portion at a time: between portions others have their turn."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node

PORTION_MS = 20
"""How long work may keep the loop before others get their turn."""


def in_portions(node: "Node", work: Iterator[None], then: Callable[[], None]) -> None:
    """Work that yields wherever it may be interrupted; ``then`` when it is done, at once if it is little."""
    end_ms = node.clock.monotonic_ms() + PORTION_MS
    for _ in work:
        if node.clock.monotonic_ms() >= end_ms:
            node.timers.after(0, lambda: in_portions(node, work, then))
            return
    then()
