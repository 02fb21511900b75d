"""Settings that change while the broker runs: topics' and brokers' overrides in ZooKeeper."""

from typing import TYPE_CHECKING

from ottla.config.areas import BrokerConfig
from ottla.config.log import LogConfig

if TYPE_CHECKING:
    from ottla.broker.node import Node


class DynamicConfigs:
    """The file's settings with ZooKeeper's over them; listens to ``/config/changes``."""

    __slots__ = ("_node", "broker", "static")

    def __init__(self, node: "Node", static: BrokerConfig) -> None:
        self._node = node
        self.static = static
        self.broker = static

    def log_config(self, topic: str) -> LogConfig:
        """A topic's settings now: its overrides over the broker's defaults."""
        return self.broker.log

    def on_new_session(self) -> None:
        """Changes may have been missed: read everything again."""
