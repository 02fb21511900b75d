"""What ends the use of a data directory."""

from ottla.storage.disk.port import Disk


class FilesRefused(Exception):
    """The directory cannot be used as it is; the text says where, why and what to do."""


class FilesFailed(Exception):
    """The disk refused a write. Nothing is written any more, and what was not synced must not be answered."""


def failure(disk: Disk, directory: str, error: OSError) -> FilesFailed:
    """A refusal of the disk, for a person."""
    try:
        free = f"{disk.space(directory)[1] // 2**20} MiB are free there"
    except OSError:
        free = "how much is free there cannot be found out"
    return FilesFailed(
        f"cannot write to {directory} ({error.strerror or error}; {free}): mend the disk or free some space, "
        "then start the keeper again; all that it answered is there"
    )
