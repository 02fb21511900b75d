"""Places to write to, tried before a query begins: Spark would fail later, and deep in its own code."""

import os
from pathlib import Path
from urllib.parse import urlparse

from ottla.spark.errors import refuse

_REMEDY = "choose a directory that you may write to"
SINK_LOG = "_spark_metadata"
"""Where Spark's file sink notes its batches, by number."""
_OWNER = "ottla-job"
_QUERY = "metadata"
"""The file of a checkpoint that Spark writes first: which query it belongs to."""


def check_checkpoint(option: str, location: str) -> None:
    """Refuse a directory on this machine that cannot be made or written to; others are Spark's to judge."""
    directory = place_here(location)
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refuse(option, location, f"it cannot be made: {error.strerror}", _REMEDY) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise refuse(option, location, "it may not be written to", _REMEDY)


def claim_checkpoint(option: str, location: str, job: str) -> None:
    """Note whose it is, or refuse that of another job: its offsets would count, and records be left out."""
    directory = place_here(location)
    if directory is None:
        return
    note = directory / _OWNER
    owner = note.read_text(encoding="utf-8").strip() if note.exists() else job
    if (directory.parent / SINK_LOG).exists():
        owner = "archive"
    if owner != job:
        raise refuse(
            option, location, f"it belongs to the job {owner}", "choose a directory for this job alone"
        )
    note.write_text(f"{job}\n", encoding="utf-8")


def has_begun(checkpoint: str) -> bool:
    """Whether a query has begun with it, as far as can be seen from here."""
    directory = place_here(checkpoint)
    return directory is not None and (directory / _QUERY).exists()


def check_file(option: str, location: str) -> None:
    """Refuse a file on this machine that cannot be written; nothing is written yet."""
    file = Path(location)
    why = None
    if file.is_dir():
        why = "it is a directory"
    elif not file.absolute().parent.is_dir():
        why = f"there is no directory {file.absolute().parent}"
    elif not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        why = "it may not be written to"
    if why is not None:
        raise refuse(option, location, why, "name a file that you may write to")


def place_here(location: str) -> Path | None:
    """A place on this machine; ``None`` for one in another of Spark's file systems."""
    parsed = urlparse(location)
    return Path(parsed.path) if parsed.scheme in ("", "file") else None
