"""Requests that wait for the end of the transaction before, instead of being refused at once.

Between EndTxn's answer and the last marker Kafka refuses the producer's next request with
CONCURRENT_TRANSACTIONS, and the client pauses for 20 to 100 ms. The markers are there much sooner, so the
request waits for them, and is refused only if they take longer than that.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from ottla.coordinator.shard import Producer
from ottla.model.ids import TopicPartition

PARKED_MAX_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Initialising:
    """InitProducerId; ``owner`` is the id and epoch that the client had before, if it had any, and ``keeps``
    leaves a transaction open that is."""

    token: int
    owner: Producer | None
    timeout_ms: int
    until_ms: int
    keeps: bool


@dataclass(frozen=True, slots=True)
class Adding:
    """AddPartitionsToTxn, or AddOffsetsToTxn with the group's partition."""

    token: int
    producer: Producer
    partitions: tuple[TopicPartition, ...]
    until_ms: int


Parked: TypeAlias = Initialising | Adding


class Parking:
    """The requests that wait, by transactional id in their order."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, list[Parked]] = {}

    def add(self, transactional_id: str, asked: Parked) -> None:
        self._by_id.setdefault(transactional_id, []).append(asked)

    def take(self, transactional_id: str) -> list[Parked]:
        """All that wait for this id."""
        return self._by_id.pop(transactional_id, [])

    def take_overdue(self, transactional_id: str, now_ms: int) -> list[Parked]:
        """Those that have waited for as long as they may."""
        waiting = self._by_id.pop(transactional_id, [])
        staying = [asked for asked in waiting if asked.until_ms > now_ms]
        if staying:
            self._by_id[transactional_id] = staying
        return [asked for asked in waiting if asked.until_ms <= now_ms]

    def take_all(self) -> list[Parked]:
        """Everyone: another broker coordinates."""
        everyone = [asked for waiting in self._by_id.values() for asked in waiting]
        self._by_id.clear()
        return everyone
