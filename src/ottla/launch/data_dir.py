"""A data directory: created if missing, locked for one process group, with room to write."""

import fcntl
import os
import shutil
import time
from pathlib import Path

from ottla.launch.refusal import LaunchRefused

LEAST_SPACE_BYTES = 128 * 1024 * 1024
LOOKERS_S_MAX = 1.0


def lock_data_dir(data_dir: Path, lock_name: str) -> int:
    """Lock a data directory; the lock lasts while anyone, children included, holds the descriptor."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(data_dir / lock_name, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LaunchRefused(
            f"cannot keep data in {data_dir} ({error.strerror}); choose another data directory"
        ) from error
    try:
        _take(lock, data_dir)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _take(lock: int, data_dir: Path) -> None:
    if not _is_taken(lock):
        holder = os.pread(lock, 32, 0).decode("ascii", errors="replace").strip()
        raise LaunchRefused(
            f"the data directory {data_dir} is in use: process {holder or 'unknown'} started a server on it; "
            "stop that one, or choose another data directory"
        )
    free = shutil.disk_usage(data_dir).free
    if free < LEAST_SPACE_BYTES:
        raise LaunchRefused(
            f"only {free // 2**20} MiB are free in {data_dir}, and {LEAST_SPACE_BYTES // 2**20} are needed; "
            "free some space, or choose another data directory"
        )
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)


def _is_taken(lock: int) -> bool:
    """Take the lock unless somebody holds it. Who only looks holds it for a moment: wait."""
    give_up = time.monotonic() + LOOKERS_S_MAX
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            pass
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False  # Another process holds it exclusively.
        fcntl.flock(lock, fcntl.LOCK_UN)
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
