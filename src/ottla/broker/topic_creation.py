"""Topics that this broker creates by itself: asked for by name, or needed by a coordinator."""

from typing import TYPE_CHECKING

from ottla.broker.metadata_image import MetadataChange

if TYPE_CHECKING:
    from ottla.broker.node import Node


class TopicCreation:
    """Writes new topics to ZooKeeper; the controller then gives them leaders."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """A topic that was being created may have come."""
