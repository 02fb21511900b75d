"""Deleting a log: rename its directory to ``-delete`` at once, remove it later."""

from ottla.storage.disk.file_names import DELETE_SUFFIX
from ottla.storage.log.log import Log

NAME_BYTES_MAX = 255


def rename_to_delete(gone: Log, token: str) -> None:
    """Take a log's directory out of use; raises ``LogDirectoryFailed``.

    ``token``: 32 hexadecimal digits that make the new name unique.
    """
    partition, directory = gone.partition, gone.home.directory
    gone.home.cancel_cleaning()
    directory.rolled.discard(partition)
    directory.check_online()
    tail = f"-{partition.partition}.{token}{DELETE_SUFFIX}"
    new_path = f"{directory.path}/{partition.topic[: NAME_BYTES_MAX - len(tail)]}{tail}"
    try:
        gone.release()
        directory.disk.rename(gone.path, new_path)
        gone.home.path = new_path
        directory.disk.sync_directory(directory.path)
    except OSError as error:
        directory.fail(error)
    directory.discard(new_path, gone.config.file_delete_delay_ms, gone.home)
    directory.forgotten.add(partition)
