"""The way from a process to a member of the cluster, step by step."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node


class Startup:
    """Znodes, cluster id, log directories, settings, logs, registration, controller, listeners."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node

    def begin(self) -> None:
        """The edge is connecting."""

    def on_session(self) -> None:
        """ZooKeeper has given us a session."""
