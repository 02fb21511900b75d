"""Cuts the stream of a connection into frames, and never holds more of one than the limit allows."""

from typing import Final, NamedTuple

from ottla.zookeeper.jute import INT, MalformedReply
from ottla.zookeeper.protocol import REPLY_HEADER_SIZE

REPLY_BYTES_MAX: Final = 4 * 1024 * 1024
"""What Kafka's clients raise ``jute.maxbuffer`` to."""


class Oversize(NamedTuple):
    """A frame over the limit: its header, and its announced size. The rest of it will be skipped."""

    header: bytes
    size: int


class FrameReader:
    """Bytes in as they come, whole frames out."""

    __slots__ = ("_buffer", "_limit", "_position", "_skip")

    def __init__(self, limit: int = REPLY_BYTES_MAX) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._position = 0
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take what the connection gave."""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        self._buffer += data

    def next_frame(self) -> bytes | Oversize | None:
        """The next frame without its length; ``None`` until more bytes come."""
        start = self._position + 4
        held = len(self._buffer) - start
        if held < 0:
            self._forget_read()
            return None
        (size,) = INT.unpack_from(self._buffer, self._position)
        if size < 0:
            raise MalformedReply(f"a frame of {size} bytes is announced")
        if size > self._limit:
            return self._oversize(start, size, held)
        if held < size:
            self._forget_read()
            return None
        self._position = start + size
        return bytes(memoryview(self._buffer)[start : self._position])

    def _oversize(self, start: int, size: int, held: int) -> Oversize | None:
        if held < REPLY_HEADER_SIZE:
            self._forget_read()
            return None
        header = bytes(self._buffer[start : start + REPLY_HEADER_SIZE])
        taken = min(size, held)
        self._position = start + taken
        self._skip = size - taken
        return Oversize(header, size)

    def _forget_read(self) -> None:
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
