"""What a log gives back: appended offsets, and files to be synced off the loop."""

from ottla.storage.disk.directory import LogDirectory
from ottla.storage.disk.port import File


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
    """The producer has sent this batch before: it is at these offsets, nothing was written."""

    __slots__ = ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, base_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset


class FlushWork:
    """Files and directories to be synced by a worker thread; then call ``Log.flushed``."""

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
