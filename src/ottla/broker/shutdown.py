"""The way out: leaderships moved, clients served, logs closed, registration gone."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node


class Shutdown:
    """Controlled shutdown with the controller's help, then the rest without it."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node

    def begin(self) -> None:
        """Leave; a second call is ignored."""
