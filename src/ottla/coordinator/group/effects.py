"""What a group shard asks its host to do."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class StoredRecord(NamedTuple):
    """One record of ``__consumer_offsets``; no value makes it a tombstone."""

    key: bytes
    value: bytes | None


class Moment(NamedTuple):
    """Now, twice: deadlines run on the monotonic clock, records carry the wall clock's time."""

    monotonic_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to the request that came with this token."""

    token: int
    response: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Write these as one batch; tell the outcome with the same ticket once it is committed."""

    ticket: int
    records: tuple[StoredRecord, ...]
    reason: str
    base_sequence: int = -1
    acks: int | None = None
    """Whose copies make it committed; ``None`` for what the broker's settings say of offsets."""


Effect: TypeAlias = Answer | Append
