"""One member of a group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NOBODY = ""
"""The member id of a client that has none yet."""


class Protocol(NamedTuple):
    """An assignor that a member supports, with the metadata for the group's leader."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A member as its coordinator knows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    awaiting_join: int | None = None
    """The token of a JoinGroup that waits until the group has gathered."""
    awaiting_sync: int | None = None
    """The token of a SyncGroup that waits for the leader's assignment."""
    deadline_ms: int = 0
    """The session ends then unless the member sends a heartbeat."""
    timer_at_ms: int | None = field(default=None, repr=False)
    """When the shard checks the deadline next; if the deadline moves later no new timer is needed."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def may_be_silent(self) -> bool:
        """A member whose JoinGroup or SyncGroup waits here cannot send heartbeats."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata_for(self, protocol: str | None) -> bytes:
        """The member's metadata for a protocol; empty if it does not support it."""
        return next((offer.metadata for offer in self.protocols if offer.name == protocol), b"")

    def offers_the_same(self, protocols: Sequence[Protocol]) -> bool:
        return self.protocols == tuple(protocols)

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of the member's protocols that all members support."""
        return next(offer.name for offer in self.protocols if offer.name in candidates)
