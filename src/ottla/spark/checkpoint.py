"""A checkpoint's directory, tried before a query begins: Spark would fail later, and deep in its own code."""

import os
from pathlib import Path
from urllib.parse import urlparse

from ottla.spark.errors import refuse

_REMEDY = "choose a directory that you may write to"


def check_checkpoint(option: str, location: str) -> None:
    """Refuse a directory on this machine that cannot be made or written to; others are Spark's to judge."""
    parsed = urlparse(location)
    if parsed.scheme not in ("", "file"):
        return
    directory = Path(parsed.path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refuse(option, location, f"it cannot be made: {error.strerror}", _REMEDY) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise refuse(option, location, "it may not be written to", _REMEDY)
