"""What a load hears of a record, whoever's client wrote it."""

from __future__ import annotations


class Written:
    """A record and what became of it, as librdkafka's messages tell it."""

    def __init__(self, value: bytes, offset: int) -> None:
        self._value = value
        self._offset = offset

    def value(self) -> bytes:
        return self._value

    def offset(self) -> int | None:
        """None where a leader only knows that it has the record."""
        return self._offset if self._offset >= 0 else None
