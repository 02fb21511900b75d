"""Timestamps with a meaning of their own: what ListOffsets takes for the ends of a log."""

from typing import Final

LATEST: Final = -1
"""The end: the high watermark, or the last stable offset for readers of committed records."""
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""The record with the largest timestamp."""
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
