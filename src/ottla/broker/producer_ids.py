"""Producer ids, handed out from blocks that the controller allocates."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node


class ProducerIds:
    """One block in use and one fetched ahead."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node
