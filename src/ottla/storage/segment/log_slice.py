"""What a read found: a range of one segment's file, whose bytes are read when they are needed."""

from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.port import Buffer, File

WARMED_AT_ONCE = 262_144


class LogSlice:
    """Batches as they are in a file. Use ``buffer`` to send them, ``read`` to parse them."""

    __slots__ = ("_directory", "_file", "available", "is_behind", "position", "segment_base_offset", "size")

    def __init__(
        self,
        directory: LogDirectory,
        file: File | None,
        position: int,
        size: int,
        segment_base_offset: int = -1,
        *,
        available: int = 0,
        is_behind: bool = False,
    ) -> None:
        self._directory = directory
        self._file = file
        self.position = position
        self.size = size
        self.segment_base_offset = segment_base_offset
        self.available = available
        """The bytes that the segment has for the reader, including those beyond its limit."""
        self.is_behind = is_behind
        """A later segment has more."""

    def buffer(self) -> Buffer:
        """The bytes, without a copy if they are many. Do not parse them: the file may shrink meanwhile."""
        if self._file is None:
            return b""
        try:
            return self._checked(self._file.slice(self.position, self.size))
        except OSError as error:
            self._directory.fail(error)

    def read(self) -> bytes:
        """A copy of the bytes."""
        if self._file is None:
            return b""
        try:
            return bytes(self._checked(self._file.pread(self.size, self.position)))
        except OSError as error:
            self._directory.fail(error)

    def warm(self, ahead_bytes: int = 0) -> None:
        """Read the bytes, and some behind them, into the page cache. Done by a worker, so that the loop does
        not wait for the disk. Read errors are left to the next reader."""
        if self._file is None:
            return
        try:
            # Never ask beyond the end: shrinking the buffer fragments the thread's heap.
            end = min(self.position + max(self.size, ahead_bytes), self._file.size())
            for position in range(self.position, end, WARMED_AT_ONCE):
                self._file.pread(min(WARMED_AT_ONCE, end - position), position)
        except OSError:
            return

    def _checked(self, content: Buffer) -> Buffer:
        if len(content) != self.size:
            raise OSError(f"a log file gave {len(content)} of {self.size} bytes at {self.position}")
        return content
