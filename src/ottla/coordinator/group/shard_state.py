"""What the parts of a group shard share: its groups, its timers and the writes under way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ottla.config.group import GroupConfig
from ottla.coordinator.group.effects import Answer, Append, Effect, Moment, StoredRecord
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.timers import Timers
from ottla.coordinator.group.transactions import OpenTransactions
from ottla.model.errors import ErrorCode


@dataclass(slots=True)
class Turn:
    """One call into the shard: the time it happens at, and what comes of it."""

    now: Moment
    effects: list[Effect] = field(default_factory=list)

    def answer(self, token: int, response: Any) -> None:
        self.effects.append(Answer(token, response))


Settle: TypeAlias = Callable[[Turn, ErrorCode], None]
"""What happens once a write was committed, or failed with this code."""


@dataclass(slots=True)
class ShardState:
    """State of one partition of ``__consumer_offsets``."""

    config: GroupConfig
    new_uuid: Callable[[], str]
    groups: dict[str, Group] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    writes: dict[int, Settle] = field(default_factory=dict)
    transactions: OpenTransactions = field(default_factory=OpenTransactions)
    _last_ticket: int = 0

    def append(
        self,
        turn: Turn,
        records: tuple[StoredRecord, ...],
        reason: str,
        settle: Settle,
        base_sequence: int = -1,
        acks: int | None = None,
    ) -> int:
        """Ask for a write; ``settle`` hears its outcome in a later turn. Later writes have higher numbers."""
        self._last_ticket += 1
        self.writes[self._last_ticket] = settle
        turn.effects.append(Append(self._last_ticket, records, reason, base_sequence, acks))
        return self._last_ticket
