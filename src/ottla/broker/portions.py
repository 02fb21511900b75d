"""Long work a portion at a time: between portions others have their turn."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.clock import Clock

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.request import Request

PORTION_MS = 20
"""How long work may keep the loop before others get their turn."""


def is_left_after_a_portion(clock: Clock, work: Iterator[None]) -> bool:
    """Go on with work, which yields wherever it may be interrupted; False when it is done."""
    end_ms = clock.monotonic_ms() + PORTION_MS
    return any(clock.monotonic_ms() >= end_ms for _ in work)


def in_portions(node: "Node", request: "Request", work: Iterator[None], then: Callable[[], None]) -> None:
    """Work for a request that yields wherever it may be interrupted; ``then`` when it is done, at once if it
    is little. Should it fail, whoever asked does not wait for ever."""
    try:
        if is_left_after_a_portion(node.clock, work):
            node.timers.after(0, lambda: in_portions(node, request, work, then))
        else:
            then()
    except Exception:
        request.fail()
        raise
