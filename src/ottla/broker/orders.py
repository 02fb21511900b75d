"""The controller's orders: one after another, and each a portion at a time.

An order for ten thousand partitions takes seconds. Between its portions clients are served and ZooKeeper
hears of us; the next order waits until the one before it is carried out, as it would in Kafka.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.portions import is_left_after_a_portion

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.request import Request


class Orders:
    """What the controller asked for and is not yet done."""

    __slots__ = ("_node", "_waiting")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._waiting: deque[tuple[Iterator[None], Request | None]] = deque()

    @property
    def are_done(self) -> bool:
        return not self._waiting

    def carry_out(self, order: Iterator[None], request: "Request | None" = None) -> None:
        """Do this when what came before is done. The order yields wherever it may be interrupted.

        Should it fail, whoever asked for it does not wait for ever.
        """
        self._waiting.append((order, request))
        if len(self._waiting) == 1:
            self._go_on()

    def stop(self) -> None:
        """The broker leaves: what is not done now will not be."""
        self._waiting.clear()

    def _go_on(self) -> None:
        """One portion. An order that fails does not take those behind it along."""
        if not self._waiting:
            return  # the broker has left since
        order, request = self._waiting[0]
        is_interrupted = False
        try:
            is_interrupted = is_left_after_a_portion(self._node.clock, order)
        except Exception:
            if request is not None:
                request.fail()
            raise
        finally:
            if not is_interrupted and self._waiting:
                self._waiting.popleft()
            if self._waiting:
                self._node.timers.after(0, self._go_on)
