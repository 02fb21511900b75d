"""Sparse index of a segment by time (``.timeindex``, entries of 12 bytes).

An entry says: up to this offset, no timestamp is larger than this one.
"""

from array import array
from bisect import bisect_left
from itertools import chain
from operator import le, lt
from struct import iter_unpack, pack

ENTRY_SIZE = 12
NONE_YET = -1


class TimeIndex:
    """Timestamps in strictly rising order, each with the offset of the batch that holds it."""

    __slots__ = ("_relatives", "_timestamps", "base_offset")

    def __init__(
        self, base_offset: int, timestamps: "array[int] | None" = None, relatives: "array[int] | None" = None
    ) -> None:
        self.base_offset = base_offset
        self._timestamps: array[int] = array("q") if timestamps is None else timestamps
        self._relatives: array[int] = array("i") if relatives is None else relatives

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The largest timestamp and its offset; (-1, base) where there is none."""
        if not self._timestamps:
            return NONE_YET, self.base_offset
        return self._timestamps[-1], self.base_offset + self._relatives[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Note a new maximum; an older or equal timestamp adds nothing."""
        timestamps = self._timestamps
        if timestamp > (timestamps[-1] if timestamps else NONE_YET):
            timestamps.append(timestamp)
            self._relatives.append(offset - self.base_offset)

    def entries(self) -> list[tuple[int, int]]:
        """All (timestamp, offset)."""
        base = self.base_offset
        return [
            (timestamp, base + relative)
            for timestamp, relative in zip(self._timestamps, self._relatives, strict=True)
        ]

    def floor(self, timestamp: int) -> tuple[int, int]:
        """The last entry with a timestamp below the given one; (-1, base) where there is none."""
        at = bisect_left(self._timestamps, timestamp)
        if not at:
            return NONE_YET, self.base_offset
        return self._timestamps[at - 1], self.base_offset + self._relatives[at - 1]

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or behind an offset."""
        at = bisect_left(self._relatives, offset - self.base_offset)
        del self._timestamps[at:]
        del self._relatives[at:]

    def encoded(self) -> bytes:
        """The file's bytes."""
        flat = chain.from_iterable(zip(self._timestamps, self._relatives, strict=True))
        return pack(">" + "qi" * len(self), *flat)


def decode_time_index(base_offset: int, content: bytes) -> TimeIndex | None:
    """Read a file's bytes; ``None`` if they cannot be a time index."""
    if len(content) % ENTRY_SIZE:
        return None
    timestamps, relatives = array("q"), array("i")
    for timestamp, relative in iter_unpack(">qi", content):
        timestamps.append(timestamp)
        relatives.append(relative)
    if timestamps and (timestamps[0] < 0 or relatives[0] < 0):
        return None
    if not all(map(lt, timestamps, timestamps[1:])) or not all(map(le, relatives, relatives[1:])):
        return None
    return TimeIndex(base_offset, timestamps, relatives)
