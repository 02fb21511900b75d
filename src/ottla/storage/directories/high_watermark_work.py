"""Write the high watermarks of a log directory to their checkpoint, off the loop."""

from ottla.model.ids import TopicPartition
from ottla.storage.disk.checkpoints import HIGH_WATERMARKS, encode_offsets
from ottla.storage.disk.directory import LogDirectory

WORK_SUFFIX = ".work.tmp"


class HighWatermarkWork:
    """A checkpoint that a worker thread writes and the loop puts in place.

    If the loop has written a newer one meanwhile, without rows of a deleted topic, that one stays.
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
            disk.sync_directory(
                self._directory.path
            )  # make the previous checkpoint's name durable before it is replaced
        except OSError as error:
            self._directory.fail(error)

    def put_in_place(self) -> None:
        """In the loop: replace the checkpoint if the worker wrote it. Raises ``LogDirectoryFailed``."""
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
        """Let the next work begin."""
        self._directory.is_checkpointing = False
