"""Reading ZooKeeper's encoding ("jute"): big-endian numbers, counted buffers, counted vectors.

Every length is checked against what is really there before anything is taken from it.
"""

from struct import Struct, error

from ottla.model.errors import MalformedRequest
from ottla.zookeeper.ops import Acl, Stat

INT = Struct(">i")
LONG = Struct(">q")
STAT = Struct(">qqqqiiiqiiq")
STAT_SIZE = STAT.size


class MalformedReply(MalformedRequest):
    """The server sent bytes that are not an answer of its protocol: hang up."""


class Cursor:
    """Reads one frame from front to back."""

    __slots__ = ("frame", "position")

    def __init__(self, frame: bytes, position: int = 0) -> None:
        self.frame = frame
        self.position = position

    def int32(self) -> int:
        """A signed number of four bytes."""
        try:
            (value,) = INT.unpack_from(self.frame, self.position)
        except error as problem:
            raise MalformedReply(f"a number is cut off: {problem}") from None
        self.position += 4
        return value  # type: ignore[no-any-return]

    def int64(self) -> int:
        """A signed number of eight bytes."""
        try:
            (value,) = LONG.unpack_from(self.frame, self.position)
        except error as problem:
            raise MalformedReply(f"a number is cut off: {problem}") from None
        self.position += 8
        return value  # type: ignore[no-any-return]

    def flag(self) -> bool:
        """One byte, 0 or 1."""
        if self.position >= len(self.frame):
            raise MalformedReply("a flag is cut off")
        value = self.frame[self.position]
        self.position += 1
        return value != 0

    def buffer(self) -> bytes | None:
        """Bytes with a count before them; a count of -1 means null."""
        size = self.int32()
        if size == -1:
            return None
        end = self.position + size
        if size < 0 or end > len(self.frame):
            raise MalformedReply(f"a buffer of {size} bytes is announced, {self.left} are left")
        value = self.frame[self.position : end]
        self.position = end
        return value

    def text(self) -> str:
        """UTF-8 with a count before it."""
        try:
            return (self.buffer() or b"").decode()
        except UnicodeDecodeError as problem:
            raise MalformedReply(f"a text is not UTF-8: {problem}") from None

    def count(self, item_size_min: int) -> int:
        """How many items follow; no more than can be in what is left."""
        count = self.int32()
        if count == -1:
            return 0
        if count < 0 or count * item_size_min > self.left:
            raise MalformedReply(f"{count} items are announced in {self.left} bytes")
        return count

    def stat(self) -> Stat:
        """A node's stat."""
        try:
            stat = Stat(*STAT.unpack_from(self.frame, self.position))
        except error as problem:
            raise MalformedReply(f"a stat is cut off: {problem}") from None
        self.position += STAT_SIZE
        return stat

    def names(self) -> tuple[str, ...]:
        """A vector of texts."""
        return tuple([self.text() for _ in range(self.count(4))])

    def acl(self) -> tuple[Acl, ...]:
        """An access control list."""
        return tuple([Acl(self.int32(), self.text(), self.text()) for _ in range(self.count(12))])

    @property
    def left(self) -> int:
        """How many bytes are not read yet."""
        return len(self.frame) - self.position
