"""Sparse offset index of a segment: position by offset (``.index``, entries of 8 bytes).

An entry is the last offset of a batch (less the segment's base) and the position where that batch begins.
The entries are kept in one flat array, and written when the segment is rolled, flushed or closed.
"""

import sys
from array import array

ENTRY_SIZE = 8


class OffsetIndex:
    """Entries in order of offset and of position, both rising."""

    __slots__ = ("_flat", "base_offset")

    def __init__(self, base_offset: int, flat: "array[int] | None" = None) -> None:
        self.base_offset = base_offset
        self._flat: array[int] = array("i") if flat is None else flat

    def __len__(self) -> int:
        return len(self._flat) >> 1

    @property
    def last_offset(self) -> int:
        """The last entry's offset, or the base where there is none."""
        return self.base_offset + (self._flat[-2] if self._flat else 0)

    def append(self, last_offset: int, position: int) -> None:
        """Note that the batch ending in ``last_offset`` begins at ``position``."""
        flat = self._flat
        relative = last_offset - self.base_offset
        assert not flat or (relative > flat[-2] and position > flat[-1]), "index entries only rise"
        flat.append(relative)
        flat.append(position)

    def entries(self) -> list[tuple[int, int]]:
        """All (offset, position)."""
        flat = self._flat
        return [(self.base_offset + flat[at], flat[at + 1]) for at in range(0, len(flat), 2)]

    def floor(self, offset: int) -> tuple[int, int]:
        """The last entry at or below an offset; (base, 0) where there is none."""
        at = self._floor(offset - self.base_offset, 0)
        if at < 0:
            return self.base_offset, 0
        return self.base_offset + self._flat[2 * at], self._flat[2 * at + 1]

    def floor_position(self, position: int) -> int:
        """The last indexed batch start at or below a position, or 0."""
        at = self._floor(position, 1)
        return self._flat[2 * at + 1] if at >= 0 else 0

    def offset_at_or_above_position(self, position: int) -> int | None:
        """The offset of the first entry whose batch begins at or behind a position."""
        at = self._floor(position - 1, 1) + 1
        return self.base_offset + self._flat[2 * at] if at < len(self) else None

    def _floor(self, target: int, column: int) -> int:
        flat = self._flat
        low, high = -1, len(flat) >> 1
        while high - low > 1:
            middle = (low + high) >> 1
            if flat[2 * middle + column] <= target:
                low = middle
            else:
                high = middle
        return low

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or behind an offset."""
        at = self._floor(offset - self.base_offset - 1, 0) + 1
        del self._flat[2 * at :]

    def encoded(self) -> bytes:
        """The file's bytes."""
        return _swapped(self._flat).tobytes()


def _swapped(flat: "array[int]") -> "array[int]":
    copy = array("i", flat)
    if sys.byteorder == "little":
        copy.byteswap()
    return copy


def decode_offset_index(base_offset: int, content: bytes, log_size: int) -> OffsetIndex | None:
    """Read a file's bytes; ``None`` if they cannot be the index of a log of that size."""
    if len(content) % ENTRY_SIZE:
        return None
    flat = array("i")
    flat.frombytes(content)
    if sys.byteorder == "little":
        flat.byteswap()
    offsets, positions = flat[0::2], flat[1::2]
    if not (_rises(offsets) and _rises(positions)):
        return None
    if flat and (offsets[0] < 0 or positions[0] < 0 or positions[-1] >= log_size):
        return None
    return OffsetIndex(base_offset, flat)


def _rises(numbers: "array[int]") -> bool:
    return all(map(int.__lt__, numbers, numbers[1:]))
