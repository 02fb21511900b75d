"""One member of a group, from its first join to its last heartbeat."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NOBODY = ""
"""The member id of a client that has none yet."""


class Protocol(NamedTuple):
    """An assignor a member can run, with what it tells the group's leader."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A consumer as its coordinator knows it."""

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
    """The token of a JoinGroup that waits for the group to gather."""
    awaiting_sync: int | None = None
    """The token of a SyncGroup that waits for the leader's assignment."""
    deadline_ms: int = 0
    """When the member counts as dead unless it is heard of."""
    timer_at_ms: int | None = field(default=None, repr=False)
    """When the shard will look at the deadline next; a deadline that moves later needs no new timer."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def may_be_silent(self) -> bool:
        """A member whose request is parked here cannot be expected to send heartbeats."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata_for(self, protocol: str | None) -> bytes:
        """What the member said for that protocol; nothing where it does not speak it."""
        return next((offer.metadata for offer in self.protocols if offer.name == protocol), b"")

    def offers_the_same(self, protocols: Sequence[Protocol]) -> bool:
        return self.protocols == tuple(protocols)

    def vote(self, candidates: frozenset[str]) -> str:
        """A member votes for the first of its own protocols that everyone speaks."""
        return next(offer.name for offer in self.protocols if offer.name in candidates)
