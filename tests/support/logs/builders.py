"""Logs, batches and disks for tests of the storage."""

from __future__ import annotations

from random import Random

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader, batches, read_header
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record, read_records
from ottla.records.validate import Origin, Refused
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.disk.directory import LogDirectory
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended, Duplicate
from ottla.storage.log.recovery import create_log, open_log
from ottla.storage.log.time_search import FoundOffset, TimeSearch

ORDERS_0 = TopicPartition("orders", 0)
ROOT = "/data"


def a_disk(seed: int = 0) -> CrashDisk:
    """A disk in memory with one log directory."""
    disk = CrashDisk(Random(seed))
    disk.make_directory(ROOT)
    disk.sync_directory("")
    return disk


def a_log(config: LogConfig | None = None, disk: CrashDisk | None = None) -> Log:
    """An empty log."""
    directory = LogDirectory(disk if disk is not None else a_disk(), ROOT)
    return create_log(directory, ORDERS_0, config or LogConfig(), now_ms=0)


def reopened(
    log: Log,
    *,
    was_clean: bool,
    recovery_point: int | None = None,
    config: LogConfig | None = None,
    gaps_are_losses: bool = True,
    log_start_offset: int = 0,
) -> Log:
    """The same directory, opened by another process."""
    directory = LogDirectory(log.home.directory.disk, log.directory)
    return open_log(
        directory,
        log.partition,
        config or log.config,
        was_clean=was_clean,
        recovery_point=log.recovery_point if recovery_point is None else recovery_point,
        log_start_offset=log_start_offset,
        high_watermark=log.high_watermark,
        gaps_are_losses=gaps_are_losses,
        now_ms=0,
    )


def a_batch(
    *values: bytes | None,
    key: bytes | None = b"k",
    timestamp: int = 1_000,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    is_transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A batch of one key, or of whatever the keywords say."""
    return build_batch(
        [Record(key, value, timestamp=timestamp) for value in values or (b"v",)],
        base_offset=base_offset,
        codec=codec,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def append(
    log: Log, batch: bytearray, *, epoch: int = 0, now_ms: int = 2_000, origin: Origin = Origin.CLIENT
) -> Appended | Duplicate | Refused:
    """Append as the leader."""
    return log.append_as_leader(batch, read_header(batch), leader_epoch=epoch, now_ms=now_ms, origin=origin)


def appended(log: Log, batch: bytearray, *, epoch: int = 0, now_ms: int = 2_000) -> Appended:
    """Append as the leader; it must succeed."""
    outcome = append(log, batch, epoch=epoch, now_ms=now_ms)
    assert isinstance(outcome, Appended), outcome
    return outcome


def end_transaction(
    log: Log,
    producer_id: int,
    *,
    is_commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    epoch: int = 0,
) -> Appended | Duplicate | Refused:
    """Append the marker that a transaction's coordinator sends."""
    marker = build_end_marker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_commit=is_commit,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=1_500,
    )
    return append(log, marker, epoch=epoch, origin=Origin.COORDINATOR)


def all_bytes(log: Log) -> bytes:
    """Every batch of the log, from its start."""
    parts = []
    offset = log.log_start_offset
    while offset < log.end_offset:
        found = log.read(offset, 1 << 20, log.end_offset)
        assert found is not None, f"offset {offset} is inside the log"
        if found.size == 0:
            break
        content = found.read()
        assert bytes(found.buffer()) == content
        parts.append(content)
        offset = list(batches(content))[-1].end_offset
    return b"".join(parts)


def found_by_time(log: Log, timestamp: int | None) -> FoundOffset | None:
    """The first record of a time, or of the largest one there is."""
    search = TimeSearch(log, timestamp)
    while not search.go_on():
        pass
    return search.found


def headers_of(content: bytes) -> list[BatchHeader]:
    return list(batches(content))


def all_records(log: Log) -> list[Record]:
    """Every record of the log's data batches."""
    content = all_bytes(log)
    return [
        record
        for header in batches(content)
        if not header.is_control
        for record in read_records(content, header)
    ]


def files_of(log: Log) -> list[str]:
    return sorted(entry.name for entry in log.home.directory.disk.list_directory(log.path))


def small_segments(**settings: object) -> LogConfig:
    """Segments of a few batches and an index entry for almost every one."""
    return LogConfig(**{"segment_bytes": 600, "index_interval_bytes": 100, **settings})  # type: ignore[arg-type]
