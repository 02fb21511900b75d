"""Kafka's names for what is in a log directory: partitions, segments, indexes, snapshots."""

import re

from ottla.model.ids import TopicPartition

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
SEGMENT_SUFFIXES = (LOG_SUFFIX, *INDEX_SUFFIXES)
SNAPSHOT_SUFFIX = ".snapshot"
"""A producer snapshot."""

TEMPORARY_SUFFIX = ".tmp"
CLEANED_SUFFIX = ".cleaned"
"""A segment that a compaction is still writing."""
SWAP_SUFFIX = ".swap"
"""A complete compacted segment that is about to replace its sources."""
DELETED_SUFFIX = ".deleted"
"""A file that waits to be removed."""
DELETE_SUFFIX = "-delete"
"""A partition directory that waits to be removed."""
FUTURE_SUFFIX = "-future"
"""A partition directory that is being filled to replace one in another log directory."""

PARTITION_MAX = 2**31 - 1
_PARTITION_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})")
_FUTURE_NAME = re.compile(r"(.+)\.[0-9a-f]+-future")


def partition_of(name: str) -> TopicPartition | None:
    """The partition a directory is named after; ``None`` for a name such as ``backup-20260101120000``."""
    found = _PARTITION_NAME.fullmatch(name)
    if found is None or int(found[2]) > PARTITION_MAX:
        return None
    return TopicPartition(found[1], int(found[2]))


def future_partition_of(name: str) -> TopicPartition | None:
    """The partition of a future log's directory; ``None`` for other names."""
    found = _FUTURE_NAME.fullmatch(name)
    return partition_of(found[1]) if found is not None else None
