"""A broker that never stands for controller: another broker of the cluster must."""

from typing import TYPE_CHECKING

from ottla.broker.metadata_image import MetadataChange

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.config.log import LogConfig


class NoController:
    """Every hook of a candidate, and nothing behind it."""

    __slots__ = ()

    def __init__(self, node: "Node") -> None:
        pass

    def start(self) -> None:
        pass

    def on_session_expired(self) -> None:
        pass

    def on_new_session(self) -> None:
        pass

    def on_metadata_changed(self, change: MetadataChange) -> None:
        pass

    def on_topic_config_changed(self, topic: str, config: "LogConfig") -> None:
        pass

    def stop(self) -> None:
        pass
