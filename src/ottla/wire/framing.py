"""Cuts a stream of bytes into frames: one reused buffer per connection, frames lent for one call.

The edge asks for room (``get_buffer``), reports what came (``received``), then takes frames until there is
none. A frame is a view into the buffer, valid until the next ``get_buffer``, or for good after ``let_go``.

While a big frame is arriving, only the rest of it is asked for; otherwise only what a small buffer holds. So
bytes are hardly ever moved. A connection that keeps filling that buffer, as one with many requests in flight
does, gets a larger one, so that one turn serves many of them. The buffer grows with the bytes that arrived,
not with the announced size, and is given back when the connection is idle.
"""

import struct
from typing import Final

from ottla.model.errors import MalformedRequest

_SIZE: Final = struct.Struct(">i")

START_BYTES: Final = 32 * 1024
ROOM_BYTES_MAX: Final = 256 * 1024
"""What is asked for at once of a connection that keeps filling its room."""
GROWTH_BYTES: Final = 1024 * 1024
"""A frame up to this size gets its room at once; a bigger one in steps, as it arrives."""

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's default of ``socket.request.max.bytes``."""


_OTHER_PROTOCOLS: Final = {
    b"\x16\x03": "; the other side speaks TLS and we do not: security.protocol",
    b"\x15\x03": "; the other side speaks TLS and we do not: security.protocol",
    b"GE": "; the other side speaks HTTP",
    b"PO": "; the other side speaks HTTP",
}
"""How what is no frame at all begins."""


class ReceiveBuffer:
    """The bytes of one connection that are not yet handled."""

    __slots__ = ("_buffer", "_end", "_frame_bytes_max", "_is_filled", "_need", "_room", "_start", "_view")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(START_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        """Where the bytes that are not yet handled begin."""
        self._end = 0
        """Where they end."""
        self._room = START_BYTES
        """How much is asked for at once; twice as much after frames that filled it."""
        self._is_filled = False
        self._need = 0
        """The length, with its size field, of the incomplete frame at the start; 0 if not known."""

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
        if self._is_filled and need <= self._room < ROOM_BYTES_MAX:
            self._room *= 2
        left = len(self._buffer) - self._end
        if self._start + max(need, 4) > len(self._buffer) or left <= self._room - START_BYTES:
            self._make_room(max(need, 4))
        end = self._end
        stop = self._start + need if need > self._room else end + self._room
        return self._view[end:stop]

    def received(self, count: int) -> None:
        """This many bytes were written at the start of the room that was given."""
        self._end += count
        self._is_filled = count == self._room

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or ``None``."""
        start = self._start
        if self._end - start < 4:
            self._need = 0
            return None
        (size,) = _SIZE.unpack_from(self._buffer, start)
        if not 0 <= size <= self._frame_bytes_max:
            other = _OTHER_PROTOCOLS.get(bytes(self._view[start : start + 2]), "")
            raise MalformedRequest(f"a frame of {size} bytes; the limit is {self._frame_bytes_max}{other}")
        stop = start + 4 + size
        if stop > self._end:
            self._need = 4 + size
            return None
        self._need = 0
        self._start = stop
        return self._view[start + 4 : stop]

    def limit(self, frame_bytes_max: int) -> None:
        """Frames up to this size are taken from now on."""
        self._frame_bytes_max = frame_bytes_max

    def let_go(self) -> None:
        """Somebody keeps the last frame: what comes next is received elsewhere."""
        self._replace(len(self._buffer))

    def give_back(self) -> None:
        """The connection is idle: keep no more memory than a new one would."""
        self._room = START_BYTES
        if self._start == self._end and len(self._buffer) > START_BYTES:
            self._replace(START_BYTES)

    def _make_room(self, need: int) -> None:
        """Room for more of a frame of that size (or of the whole frames that nobody has taken yet)."""
        have = self._end - self._start
        room = -(-(have + self._room) // START_BYTES) * START_BYTES
        wanted = min(max(need, room), max(2 * have, GROWTH_BYTES))
        if wanted > len(self._buffer):
            self._replace(wanted)
        elif self._start:
            # One slice of a buffer onto another is moved as a whole, also where they overlap.
            self._view[:have] = self._view[self._start : self._end]
            self._start, self._end = 0, have

    def _replace(self, capacity: int) -> None:
        have = self._end - self._start
        buffer = bytearray(capacity)
        view = memoryview(buffer)
        view[:have] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, have
