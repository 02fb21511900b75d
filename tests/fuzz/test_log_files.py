"""Spoiled files of a log: the log opens again, sound, or its directory is offline; nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import crc_is_valid, read_header
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.directories.opening import CannotStart
from ottla.storage.disk.checkpoints import (
    CorruptCheckpoint,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
)
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.log.epoch_checkpoint import decode_epochs
from ottla.storage.log.log import Log
from ottla.storage.producers.snapshots import CorruptSnapshot, decode_snapshot
from ottla.storage.segment.offset_index import decode_offset_index
from ottla.storage.segment.time_index import decode_time_index
from ottla.storage.segment.txn_index import decode_txn_index
from support.logs.builders import a_batch, append, appended, end_transaction, found_by_time
from support.logs.truth import check_data
from support.wire.mutations import mutated

TIMES = int(os.environ.get("OTTLA_FUZZ_N", "4000"))
SEED = os.environ.get("OTTLA_FUZZ_SEED", "files")
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
ORDERS = TopicPartition("orders", 0)


def a_stopped_broker() -> CrashDisk:
    """A directory with every kind of file in it."""
    disk = CrashDisk(Random(0))
    dirs = LogDirs(disk, ["/data"])
    dirs.lock()
    dirs.claim(1, "cluster", "today")
    dirs.open(CONFIG, {}, 0)
    log = dirs.create(ORDERS, CONFIG, topic_id=TopicId(bytes(range(16))), now_ms=0)
    for at in range(20):
        batch = a_batch(bytes(60), timestamp=1_000 + at, producer_id=7, producer_epoch=0, sequence=at)
        appended(log, batch, epoch=at // 6)
    append(log, a_batch(b"t", producer_id=8, producer_epoch=0, sequence=0, is_transactional=True), epoch=4)
    end_transaction(log, 8, is_commit=False, epoch=4)
    log.set_high_watermark(log.end_offset)
    log.raise_log_start_offset(3)
    log.first_dirty_offset = 5
    dirs.close()
    return disk


def files_of(disk: CrashDisk, directory: str = "/data") -> list[str]:
    found = []
    for entry in disk.list_directory(directory):
        path = f"{directory}/{entry.name}"
        found += files_of(disk, path) if entry.is_directory else [path]
    return found


DECODERS: dict[str, tuple[Callable[[bytes], object], tuple[type[Exception], ...]]] = {
    ".index": (lambda content: decode_offset_index(0, content, 700), ()),
    ".timeindex": (lambda content: decode_time_index(0, content), ()),
    ".txnindex": (lambda content: decode_txn_index(content, 0), ()),
    ".snapshot": (lambda content: decode_snapshot(content, 5), (CorruptSnapshot,)),
    "leader-epoch-checkpoint": (decode_epochs, (CorruptCheckpoint,)),
    "replication-offset-checkpoint": (decode_offsets, (CorruptCheckpoint,)),
    "partition.metadata": (decode_partition_metadata, (CorruptCheckpoint,)),
    "meta.properties": (decode_meta_properties, (CorruptCheckpoint,)),
}


@pytest.mark.slow
def test_spoiled_small_files_are_read_or_refused_as_declared() -> None:
    random = Random(SEED)
    disk = a_stopped_broker()
    sources = [
        (disk.read_file(path), decoder)
        for path in files_of(disk)
        for ending, decoder in DECODERS.items()
        if path.endswith(ending)
    ]
    assert len({decoder for _, decoder in sources}) == len(DECODERS)

    for _ in range(TIMES):
        content, (decode, declared) = random.choice(sources)
        try:
            decode(mutated(random, content))
        except declared:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("is_clean", [True, False])
def test_broker_with_a_spoiled_file_starts_and_serves_no_false_batch(is_clean: bool) -> None:
    random = Random(f"{SEED} {is_clean}")
    original = a_stopped_broker()
    paths = [path for path in files_of(original) if not path.endswith((".lock", ".kafka_cleanshutdown"))]

    for _ in range(max(100, TIMES // 20)):
        disk = original.clone(random)
        for path in random.sample(paths, random.choice((1, 1, 2, 4))):
            disk.write_file(path, mutated(random, disk.read_file(path)))
        if not is_clean:
            disk.remove("/data/.kafka_cleanshutdown")
            disk.remove("/data/recovery-point-offset-checkpoint")
        start_and_look(disk)


def start_and_look(disk: CrashDisk) -> None:
    dirs = LogDirs(disk, ["/data"])
    dirs.lock()
    try:
        dirs.claim(1, "cluster", "today")
    except CannotStart:
        return
    dirs.open(CONFIG, {}, 0)
    for log in dirs.logs.values():
        try:
            read_through(log)
            if not log.was_clean:
                check_data(log, is_dense=False, epochs_rise=False)
        except LogDirectoryFailed:
            continue


def read_through(log: Log) -> None:
    found_by_time(log, 1_010)
    found_by_time(log, None)
    assert log.last_stable_offset >= 0
    offset = log.log_start_offset
    while offset < log.end_offset:
        found = log.read(offset, 1, log.end_offset)
        assert found is not None
        content = found.read()
        if not content:
            return
        header = read_header(content)
        assert header.size == len(content)
        assert header.last_offset >= offset
        crc_is_valid(content, header)
        offset = header.end_offset
