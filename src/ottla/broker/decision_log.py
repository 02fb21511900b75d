"""Why things are as they are: the controller's decisions, kept in memory and bounded."""

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ottla.controller.effects import Decided, Decision

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

KEPT_MAX = 100_000


class Recorded(NamedTuple):
    """A decision with its circumstances."""

    decision: Decision
    cause: str
    controller_epoch: int
    time_ms: int


class DecisionLog:
    """The last decisions of this broker as controller; what does not fit is counted, not waited for."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.recorded: deque[Recorded] = deque(maxlen=KEPT_MAX)
        self.dropped = 0

    def take(self, decided: Decided) -> None:
        """Keep the decisions of a turn; this never delays it."""
        now_ms = self._node.clock.wall_ms()
        overflow = len(self.recorded) + len(decided.decisions) - KEPT_MAX
        self.dropped += max(0, overflow)
        cause, epoch = decided.cause, decided.controller_epoch
        self.recorded.extend([Recorded(each, cause, epoch, now_ms) for each in decided.decisions])
