"""Offsets that were written in a transaction and wait for its marker."""

from collections.abc import Iterator

from ottla.coordinator.group.effects import StoredRecord


class OpenTransactions:
    """By producer and key. What was written last counts in the end, not whose marker came last."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, producer_id: int, offset: int, record: StoredRecord) -> None:
        """A record of a transaction, written at that offset of the log."""
        self._waiting.setdefault(producer_id, {})[record.key] = (offset, record.value)

    def overtaken(self, key: bytes) -> None:
        """Somebody else committed the same key, later than whatever waits."""
        for waiting in self._waiting.values():
            waiting.pop(key, None)

    def end(self, producer_id: int, *, is_commit: bool) -> Iterator[StoredRecord]:
        """A marker: what the producer wrote counts now, or never did."""
        for key, (offset, value) in self._waiting.pop(producer_id, {}).items():
            if not is_commit:
                continue
            for waiting in self._waiting.values():
                if key in waiting and waiting[key][0] < offset:
                    del waiting[key]
            yield StoredRecord(key, value)

    def is_waiting(self, key: bytes) -> bool:
        return any(key in waiting for waiting in self._waiting.values())
