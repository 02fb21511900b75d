"""``/feature``: what the cluster agreed to use, always empty in ZooKeeper mode; its version is shown."""

from typing import TYPE_CHECKING, Any

from ottla.zookeeper import paths
from ottla.zookeeper.ops import Data, Exists, Failed, GetData, WatchEvent

if TYPE_CHECKING:
    from ottla.broker.node import Node


class Features:
    """Follows the znode; ``epoch`` is its version, or -1 while there is none."""

    __slots__ = ("_node", "epoch")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.epoch = -1
        node.zk.watch(paths.FEATURE, self._on_watch)

    def read(self) -> None:
        """Read the znode and arm its watch, there or not."""
        self._node.zk.submit(GetData(paths.FEATURE, watch=True), self._on_data)

    def _on_watch(self, event: WatchEvent) -> None:
        self.read()

    def _on_data(self, result: Any) -> None:
        if isinstance(result, Data):
            self.epoch = result.stat.version
        elif isinstance(result, Failed):
            self.epoch = -1
            self._node.zk.submit(Exists(paths.FEATURE, watch=True), self._on_exists)

    def _on_exists(self, result: Any) -> None:
        if not isinstance(result, Failed):
            self.read()
