"""``/feature``: what the cluster agreed to use, always empty in ZooKeeper mode; its version is shown."""

from typing import Any

from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.znodes import paths
from ottla.zookeeper.ops import Data, Exists, Failed, GetData, WatchEvent


class Features:
    """Follows the znode; ``epoch`` is its version, or -1 while there is none."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self.epoch = -1
        zk.watch(paths.FEATURE, self._on_watch)

    def read(self) -> None:
        """Read the znode and arm its watch, there or not."""
        self._zk.submit(GetData(paths.FEATURE, watch=True), self._on_data)

    def _on_watch(self, event: WatchEvent) -> None:
        self.read()

    def _on_data(self, result: Any) -> None:
        if isinstance(result, Data):
            self.epoch = result.stat.version
        elif isinstance(result, Failed):
            self.epoch = -1
            self._zk.submit(Exists(paths.FEATURE, watch=True), self._on_exists)

    def _on_exists(self, result: Any) -> None:
        if not isinstance(result, Failed):
            self.read()
