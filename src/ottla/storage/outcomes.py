"""What a log gives back: appended offsets, slices to read, work to do off the loop."""

from ottla.model.ids import TopicPartition
from ottla.storage.checkpoints import HIGH_WATERMARKS, encode_offsets
from ottla.storage.disk import Buffer, File
from ottla.storage.log_directory import LogDirectory

WARMED_AT_ONCE = 262_144
WORK_SUFFIX = ".work.tmp"


class Appended:
    """A batch, or several as a follower, is in the log. ``size`` 0: there was nothing to append."""

    __slots__ = ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset", "size")

    def __init__(
        self, base_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int, size: int
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.size = size


class Duplicate:
    """The producer has sent this batch before: it lies at these offsets, nothing was written."""

    __slots__ = ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, base_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset


class LogSlice:
    """Batches as they lie in a file. ``buffer`` is for handing on, ``read`` for looking into."""

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
        """The bytes that the segment has for the reader, beyond its limit too."""
        self.is_behind = is_behind
        """A later segment has more."""

    def buffer(self) -> Buffer:
        """The bytes, without a copy where that pays. Do not parse them: the file may shrink behind them."""
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
        """Bring the bytes, and some behind them, into the kernel's memory. For a worker: whoever reads them
        next does not wait for the disk. What cannot be read is that reader's to find out."""
        if self._file is None:
            return
        try:
            # Never beyond the end: a buffer that must shrink leaves a hole in its thread's heap each time.
            end = min(self.position + max(self.size, ahead_bytes), self._file.size())
            for position in range(self.position, end, WARMED_AT_ONCE):
                self._file.pread(min(WARMED_AT_ONCE, end - position), position)
        except OSError:
            return

    def _checked(self, content: Buffer) -> Buffer:
        if len(content) != self.size:
            raise OSError(f"a log file gave {len(content)} of {self.size} bytes at {self.position}")
        return content


class FlushWork:
    """Files and names to be synced, by a worker thread; then tell the log with ``Log.flushed``."""

    __slots__ = ("_directory", "_files", "cuts", "end_offset", "paths")

    def __init__(
        self, directory: LogDirectory, files: list[File], paths: list[str], end_offset: int, cuts: int
    ) -> None:
        self._directory = directory
        self._files = files
        self.paths = paths
        self.end_offset = end_offset
        self.cuts = cuts

    def __call__(self) -> None:
        """Sync everything; raises ``LogDirectoryFailed``."""
        disk = self._directory.disk
        try:
            for file in self._files:
                file.sync()
            for path in dict.fromkeys(self.paths):
                try:
                    disk.sync_file(path)
                except FileNotFoundError:
                    continue
        except OSError as error:
            self._directory.fail(error)


class HighWatermarkWork:
    """High watermarks to be noted: written by a worker thread, put in place by the loop.

    The loop may have noted newer ones meanwhile, without those of a topic that is gone; they stay then.
    """

    __slots__ = ("_directory", "_round", "_values")

    def __init__(self, directory: LogDirectory, values: dict[TopicPartition, int]) -> None:
        self._directory = directory
        self._values = values
        self._round = directory.high_watermark_rounds
        directory.is_checkpointing = True

    @property
    def _path(self) -> str:
        return f"{self._directory.path}/{HIGH_WATERMARKS}"

    def __call__(self) -> None:
        """Write them beside the checkpoint, synced; raises ``LogDirectoryFailed``."""
        disk, temporary = self._directory.disk, self._path + WORK_SUFFIX
        try:
            disk.write_file(temporary, encode_offsets(self._values))
            disk.sync_file(temporary)
            disk.sync_directory(self._directory.path)  # the checkpoint before this one keeps its name
        except OSError as error:
            self._directory.fail(error)

    def put_in_place(self) -> None:
        """In the loop: replace the checkpoint, if the work was done. Raises ``LogDirectoryFailed``."""
        directory, temporary = self._directory, self._path + WORK_SUFFIX
        self.give_up()
        if directory.failure is not None:
            return
        try:
            if self._round == directory.high_watermark_rounds:
                directory.disk.rename(temporary, self._path)
            else:
                directory.disk.remove(temporary)
        except OSError as error:
            directory.fail(error)

    def give_up(self) -> None:
        """The next round may begin."""
        self._directory.is_checkpointing = False
