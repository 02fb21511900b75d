"""Cuts a stream of bytes into frames: one reused buffer per connection, frames lent for one call.

The edge asks for room (``get_buffer``), reports what came (``received``), then takes frames until there is
none. While a frame larger than the buffer is on its way, no more is asked for than the rest of it, so that
nothing is ever moved behind it. A frame is a view into the buffer: it is valid until the next ``get_buffer``.
"""

import struct
from typing import Final

from ottla.model.errors import MalformedRequest

_SIZE: Final = struct.Struct(">i")

START_BYTES: Final = 16 * 1024
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's default of ``socket.request.max.bytes``."""

_GROWTH_BYTES_MAX: Final = 1024 * 1024
"""The buffer follows the bytes that really came, at most this far ahead of them."""


class ReceiveBuffer:
    """The bytes of one connection that are not yet handled."""

    __slots__ = ("_buffer", "_end", "_frame_bytes_max", "_need", "_start", "_view")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(START_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        """Where the bytes that are not yet handled begin."""
        self._end = 0
        """Where they end."""
        self._need = 0
        """The size, with its prefix, of the frame that is not yet whole; 0 if it is not known."""

    def __len__(self) -> int:
        """How many bytes wait to be handled."""
        return self._end - self._start

    @property
    def capacity(self) -> int:
        """How much memory the buffer takes."""
        return len(self._buffer)

    def get_buffer(self) -> memoryview:
        """Room for the next bytes, never empty. Frames lent before are no longer valid."""
        if self._start == self._end:
            self._start = self._end = 0
        need = self._need
        if need > START_BYTES:
            self._make_room(need)
            return self._view[self._end : min(self._start + need, len(self._buffer))]
        if len(self._buffer) > START_BYTES and self._end - self._start < START_BYTES:
            self._move_to(START_BYTES)
        elif self._end == len(self._buffer) or self._start + need > len(self._buffer):
            self._move_to(len(self._buffer))
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """This many bytes were written at the start of the room that was given."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or ``None``."""
        start = self._start
        if self._end - start < 4:
            return None
        (size,) = _SIZE.unpack_from(self._buffer, start)
        if not 0 <= size <= self._frame_bytes_max:
            raise MalformedRequest(f"a frame of {size} bytes; the limit is {self._frame_bytes_max}")
        stop = start + 4 + size
        if stop > self._end:
            self._need = 4 + size
            return None
        self._need = 0
        self._start = stop
        return self._view[start + 4 : stop]

    def _make_room(self, need: int) -> None:
        """Room for a big frame; it grows with the bytes that came, not with what the size promised."""
        have = self._end - self._start
        wanted = min(need, max(2 * have, _GROWTH_BYTES_MAX))
        if wanted > len(self._buffer) - self._start and (self._start or wanted > len(self._buffer)):
            self._move_to(max(wanted, len(self._buffer)) if wanted > len(self._buffer) else len(self._buffer))

    def _move_to(self, capacity: int) -> None:
        """Put the waiting bytes at the start of a buffer of this size."""
        have = self._end - self._start
        if capacity == len(self._buffer) and self._start >= have:
            self._view[:have] = self._view[self._start : self._end]
        else:
            buffer = bytearray(capacity)
            view = memoryview(buffer)
            view[:have] = self._view[self._start : self._end]
            self._buffer, self._view = buffer, view
        self._start, self._end = 0, have
