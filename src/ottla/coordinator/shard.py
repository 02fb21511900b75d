"""The shape that every coordinator has: requests become records and replies, and records become state.

A shard is one partition of an internal topic. It handles a request or a deadline and returns effects:
replies, and records to append. Its stored state changes only by ``apply``: live when an append is committed,
and after a change of leader for every record of the log. Until then ``Writes`` holds it (ADR 0014).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

T = TypeVar("T")


class StoredRecord(NamedTuple):
    """One record of an internal topic; no value makes it a tombstone."""

    key: bytes
    value: bytes | None


KeyAndValue: TypeAlias = tuple[bytes | None, bytes | None]
"""A record as it is read from a log: others may have written one without a key."""


class Moment(NamedTuple):
    """Now: deadlines run on the monotonic clock, records carry the wall clock's time."""

    monotonic_ms: int
    wall_ms: int


class Producer(NamedTuple):
    """Who writes in a transaction."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to the request that came with this token."""

    token: int
    response: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Write these records as one batch, then call ``appended`` with the ticket and the outcome."""

    ticket: int
    records: tuple[StoredRecord, ...]
    reason: str
    base_sequence: int = -1
    acks: int | None = None
    """``None`` stands for the setting of the internal topic."""
    producer: Producer | None = None
    """Set when the batch belongs to a transaction."""
    timeout_ms: int | None = None
    """How long the in-sync replicas may take; ``None`` stands for the setting of the internal topic."""
    verification: int | None = None
    """The token of the check (KIP-890) that came before a transaction's first batch."""


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Have the end of a transaction written to these partitions; report each with ``marked``."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TransactionFenced:
    """An open transaction is aborted, and not by its producer, which is fenced: tell people."""

    transactional_id: str
    producer: Producer
    """With the epoch that the producer had."""
    cause: str
    start_ms: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class PreparedHandedOver:
    """These transactional ids wait for a decision, and another broker coordinates them now: tell people."""

    transactional_ids: tuple[str, ...]


Effect: TypeAlias = Answer | Append | SendMarkers | TransactionFenced | PreparedHandedOver


@dataclass(slots=True)
class Turn:
    """One call into a shard: its time, and the effects so far."""

    now: Moment
    effects: list[Effect] = field(default_factory=list)

    def answer(self, token: int, response: Any) -> None:
        self.effects.append(Answer(token, response))


@dataclass(frozen=True, slots=True)
class Write(Generic[T]):
    """One append under way, and what to do with its outcome."""

    append: Append
    entity: str
    then: T


_NO_TARGETS: Final[Mapping[bytes, dict[int, StoredRecord]]] = {}


class Writes(Generic[T]):
    """The appends under way, and the records that they will apply: the pending set.

    Tickets rise in the order of the log. Appends may be committed in another order, because one with acks=0
    does not wait for the followers: when a record is applied, the pending set forgets what earlier appends
    hold for the same key.
    """

    __slots__ = ("_last_ticket", "_targets", "_under_way")

    def __init__(self) -> None:
        self._under_way: dict[int, Write[T]] = {}
        self._targets: dict[str, dict[bytes, dict[int, StoredRecord]]] = {}
        self._last_ticket = 0

    def __len__(self) -> int:
        return len(self._under_way)

    def __iter__(self) -> Iterator[int]:
        """The tickets under way, oldest first."""
        return iter(self._under_way)

    def targets(self, entity: str) -> Mapping[bytes, Mapping[int, StoredRecord]]:
        """What is under way for a group or transactional id: the records by key, then by ticket."""
        return self._targets.get(entity, _NO_TARGETS)

    def begin(
        self,
        turn: Turn,
        entity: str,
        records: tuple[StoredRecord, ...],
        then: T,
        reason: str,
        *,
        base_sequence: int = -1,
        acks: int | None = None,
        producer: Producer | None = None,
        timeout_ms: int | None = None,
        verification: int | None = None,
    ) -> None:
        """Append these records, all of one entity."""
        self._last_ticket += 1
        append = Append(
            self._last_ticket, records, reason, base_sequence, acks, producer, timeout_ms, verification
        )
        self._under_way[append.ticket] = Write(append, entity, then)
        targets = self._targets.setdefault(entity, {})
        for record in records:
            targets.setdefault(record.key, {})[append.ticket] = record
        turn.effects.append(append)

    def end(self, ticket: int, *, is_committed: bool) -> tuple[Write[T], list[StoredRecord]] | None:
        """The write and the records to apply; nothing for a ticket that is not under way."""
        write = self._under_way.pop(ticket, None)
        if write is None:
            return None
        targets = self._targets.get(write.entity, {})
        to_apply: list[StoredRecord] = []
        for key, _ in write.append.records:
            of_key = targets.get(key, {})
            record = of_key.pop(ticket, None)
            if is_committed and record is not None:
                to_apply.append(record)
                for earlier in [other for other in of_key if other < ticket]:
                    del of_key[earlier]
            if not of_key:
                targets.pop(key, None)
        if not targets:
            self._targets.pop(write.entity, None)
        return write, to_apply


class Shard(ABC, Generic[T]):
    """One partition of an internal topic, as its host knows it. Synchronous and without a clock.

    A load is ``apply`` and ``end_transaction`` in the order of the log, then ``restore``, then ``loaded``.
    """

    def __init__(self) -> None:
        self.writes: Writes[T] = Writes()

    # -- stored state --------------------------------------------------------------------------

    @property
    @abstractmethod
    def entity_count(self) -> int:
        """How many groups or transactional ids are known."""

    @property
    @abstractmethod
    def unreadable(self) -> int:
        """How many records were skipped: of an unknown kind or version, or impossible to parse."""

    @abstractmethod
    def apply(self, records: Iterable[KeyAndValue], producer_id: int | None = None) -> None:
        """Take committed records into the stored state; those of a transaction wait for its marker."""

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker is committed: apply the transaction's records, or drop them. Repeating it does nothing."""

    def restore(self) -> Iterator[None]:
        """All records are applied: build what requests need beside the stored state, a portion each step."""
        return iter(())

    # -- live ----------------------------------------------------------------------------------

    @abstractmethod
    def loaded(self, now: Moment) -> list[Effect]:
        """The shard serves from now on."""

    @abstractmethod
    def settled(self, turn: Turn, then: T, error: ErrorCode) -> None:
        """A write has its outcome. If it was committed, its records are already applied."""

    def appended(self, ticket: int, error: ErrorCode, now: Moment) -> list[Effect]:
        """An append is committed, or has failed. Outcomes that arrive after ``unload`` are ignored."""
        turn = Turn(now)
        ended = self.writes.end(ticket, is_committed=error is ErrorCode.NONE)
        if ended is not None:
            write, records = ended
            producer = write.append.producer
            self.apply(records, producer.producer_id if producer is not None else None)
            self.settled(turn, write.then, error)
        return turn.effects

    def marked(self, entity: str, partitions: Iterable[TopicPartition], now: Moment) -> list[Effect]:
        """These partitions have the marker that ``SendMarkers`` asked for, or were deleted."""
        return []

    def partitions_deleted(self, partitions: Iterable[TopicPartition], now: Moment) -> list[Effect]:
        """Topics were deleted, with these partitions."""
        return []

    @abstractmethod
    def next_deadline_ms(self) -> int | None:
        """When ``tick`` is due, by the monotonic clock."""

    @abstractmethod
    def tick(self, now: Moment) -> list[Effect]:
        """Handle all deadlines that have passed."""

    # -- the end -------------------------------------------------------------------------------

    def unload(self, now: Moment) -> list[Effect]:
        """Another broker coordinates from now on: answer everyone who waits with NOT_COORDINATOR."""
        turn = Turn(now)
        for ticket in list(self.writes):
            ended = self.writes.end(ticket, is_committed=False)
            if ended is not None:
                self.settled(turn, ended[0].then, ErrorCode.NOT_COORDINATOR)
        return turn.effects

    @abstractmethod
    def free_some(self) -> bool:
        """Free a portion of an unloaded shard's memory; false when nothing is left."""
