"""A Python worker of Spark's, made ready for many tasks that move megabytes."""

import ctypes
import gc
from functools import cache

KEPT_BYTES = 256 * 1024 * 1024
"""So much freed memory a worker may keep for its next chunks."""
KEPT_PIECE_BYTES = (KEPT_BYTES, 32 * 1024 * 1024)
"""A piece up to this size is kept; older systems take no more than the second."""

# The numbers that glibc's mallopt knows these settings by.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@cache
def settle_worker() -> None:
    """Once in a process, behind the first rows, when all that a task needs is imported and compiled.

    Spark collects garbage after every task, and would look each time at all that numba and Arrow have
    made. And a chunk's buffers come and go: given back to the system, each of their pages would have to
    be had and cleared again for the next chunk. Together that was a third of a worker's time.
    """
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        any(mallopt(_MMAP_THRESHOLD, size) for size in KEPT_PIECE_BYTES)
