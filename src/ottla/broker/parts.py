"""What the node tells its parts, and when: the hooks that a part must have."""

from typing import TYPE_CHECKING, Protocol

from ottla.broker.connections import Connection
from ottla.broker.metadata_image import MetadataChange

if TYPE_CHECKING:
    from ottla.broker.decision_records import LogCut, UncleanStart
    from ottla.config.areas import BrokerConfig
    from ottla.config.log import LogConfig


class PartitionsHooks(Protocol):
    """``node.partitions``: the partitions this broker hosts."""

    def start(self) -> None:
        """``node.log_dirs`` is open and its logs are recovered; the broker is not registered yet."""

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """An UpdateMetadata was applied to ``node.metadata``."""

    def on_topic_config_changed(self, topic: str, config: "LogConfig") -> None:
        """A topic's settings changed in ZooKeeper, or the broker's defaults under them."""

    def on_broker_config_changed(self, before: "BrokerConfig", after: "BrokerConfig") -> None:
        """The broker's own dynamic settings changed; ``node.config`` is already the new one."""

    def stop(self) -> None:
        """The broker leaves: no fetching, no appending any more; the node then closes ``node.log_dirs``."""


class WaitingHooks(Protocol):
    """``node.waiting``: requests parked until something happens or their time is up."""

    def on_client_lost(self, connection: Connection) -> None:
        """Forget what that client waits for."""

    def end_turn(self) -> None:
        """The turn's events are handled: answer what became ready through them."""

    def stop(self) -> None:
        """The broker leaves: answer everything that is parked as if its time were up."""


class ControllerHooks(Protocol):
    """``node.controller``: every broker's candidate for the controller."""

    def start(self) -> None:
        """The broker is registered: watch ``/controller`` and take part in the election."""

    def on_session_expired(self) -> None:
        """Resign, drop what was queued (each waiting request hears NOT_CONTROLLER)."""

    def on_new_session(self) -> None:
        """The broker is registered again, with a new broker epoch: take part again."""

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """An UpdateMetadata was applied to ``node.metadata``: CreateTopics and others may wait for it."""

    def on_topic_config_changed(self, topic: str, config: "LogConfig") -> None:
        """Unclean elections may be allowed now."""

    def on_broker_config_changed(self, before: "BrokerConfig", after: "BrokerConfig") -> None:
        """Unclean elections may be allowed now, wherever a topic does not forbid them."""

    def on_log_cut(self, cut: "LogCut") -> None:
        """A follower on this broker cut its log to agree with its leader."""

    def on_unclean_start(self, start: "UncleanStart") -> None:
        """A partition on this broker is led by an unclean election."""

    def stop(self) -> None:
        """The broker leaves: resign."""
