"""Filling a future log: create it, copy batches into it, and let it know what the log knows.

Compaction may have left gaps in the log; the copy has the same ones.
"""

from ottla.records.batch import CorruptRecords
from ottla.records.validate import Refused
from ottla.storage.disk.directory import LogDirectory, PartitionHome
from ottla.storage.disk.file_names import FUTURE_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment


def create_future(current: Log, directory: LogDirectory, *, token: str, now_ms: int) -> Log:
    """An empty copy that begins where the log begins. Raises ``OSError`` where the disk does."""
    partition, start = current.partition, current.log_start_offset
    home = PartitionHome(directory, partition, f"{directory.path}/{partition}.{token}{FUTURE_SUFFIX}")
    directory.disk.make_directory(home.path)
    segment = Segment(home, start, created_ms=now_ms, modified_ms=now_ms)
    segment.create()
    segment.close_file()
    future = Log(
        home, current.config, [segment], log_start_offset=start, end_offset=start, recovery_point=start
    )
    future.note_created()
    if current.topic_id is not None:
        future.assign_topic_id(current.topic_id)
    return future


def copy_portion(current: Log, future: Log, max_bytes: int, limit_offset: int, now_ms: int) -> int:
    """Copy the next batches below an offset; how many bytes. Compaction may have left gaps between them.

    Starts again if the copy ends before the log begins, or lost its beginning in a power cut.
    Raises ``CorruptRecords`` if the log's batches are invalid.
    """
    start = current.log_start_offset
    if future.end_offset < start or future.log_start_offset > start:
        future.truncate_fully_and_start_at(start)
    if future.end_offset >= limit_offset:
        return 0
    found = current.read(future.end_offset, max_bytes, limit_offset, True)
    if found is None or not found.size:
        return 0
    outcome = future.append_as_follower(memoryview(bytearray(found.read())), now_ms=now_ms)
    if isinstance(outcome, Refused):
        raise CorruptRecords(outcome.message or "the copy refuses what the log holds")
    return outcome.size


def common_end(current: Log, future: Log) -> int:
    """Up to where the copy holds what the log holds, by the leader epochs of both.

    While nobody looked, the log may have been cut and filled again by another leader.
    """
    end = future.end_offset
    for entry in reversed(future.epochs.entries()):
        epoch, end_there = current.epochs.end_offset_for(entry.epoch, current.end_offset)
        if epoch == entry.epoch:
            return min(end, end_there)
        end = entry.start_offset
    return future.log_start_offset


def take_over(current: Log, future: Log) -> None:
    """The copy is complete: it knows what the log knew beside its records."""
    assert future.end_offset == current.end_offset, "a copy takes over when it has everything"
    future.config = current.config
    for entry in current.epochs.entries():
        future.epochs.assign(entry.epoch, entry.start_offset)
    future.high_watermark = current.high_watermark
    future.raise_log_start_offset(current.log_start_offset)
