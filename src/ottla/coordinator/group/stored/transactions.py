"""Offsets that were written in a transaction and wait for its marker."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.coordinator.shard import StoredRecord


class _Waiting(NamedTuple):
    order: int
    """Its place in the log, among all that wait."""
    value: bytes | None
    is_void: bool = False
    """A later record of the key counts already. Readers of stable offsets still wait for the marker."""


class OpenTransactions:
    """By producer and key. The record written last wins, whichever marker comes first."""

    __slots__ = ("_last_order", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[int, dict[bytes, _Waiting]] = {}
        self._last_order = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, producer_id: int, record: StoredRecord) -> None:
        """Keep a record until its marker; records come in the order of the log."""
        self._last_order += 1
        self._waiting.setdefault(producer_id, {})[record.key] = _Waiting(self._last_order, record.value)

    def overtaken(self, key: bytes, *, is_tombstone: bool) -> None:
        """A later record of the key was written outside a transaction: what waits for it is void."""
        for waiting in self._waiting.values():
            if key in waiting:
                if is_tombstone:
                    del waiting[key]
                else:
                    waiting[key] = waiting[key]._replace(is_void=True)

    def end(self, producer_id: int, *, is_commit: bool) -> Iterator[StoredRecord]:
        """The records that a marker makes valid; none if it aborts."""
        for key, (order, value, is_void) in self._waiting.pop(producer_id, {}).items():
            if not is_commit or is_void:
                continue
            for waiting in self._waiting.values():
                if key in waiting and waiting[key].order < order:
                    waiting[key] = waiting[key]._replace(is_void=True)
            yield StoredRecord(key, value)

    def is_waiting(self, key: bytes) -> bool:
        return any(key in waiting for waiting in self._waiting.values())

    def keys_with(self, head: bytes) -> set[bytes]:
        """The keys that wait and begin like this."""
        return {key for waiting in self._waiting.values() for key in waiting if key.startswith(head)}

    def waiting(self) -> Mapping[int, Mapping[bytes, tuple[bytes | None, bool]]]:
        """What waits, by producer and key, and whether it is void."""
        return {
            producer_id: {key: (each.value, each.is_void) for key, each in records.items()}
            for producer_id, records in self._waiting.items()
            if records
        }
