"""The broker's place in the cluster: start-up znodes, cluster id, ``/brokers/ids/<id>`` and its epoch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node


class Registration:
    """Writes and keeps the broker's registration; ``broker_epoch`` is the czxid of its znode."""

    __slots__ = ("_node", "broker_epoch")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.broker_epoch = -1

    def register_again(self, then: Callable[[], None]) -> None:
        """After a session expired: the same registration under a new epoch."""

    def on_session_expired(self) -> None:
        """The znode is gone or will be."""
