"""Batches that are as they were written, and hold what nobody should have written."""

from __future__ import annotations

import pytest

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition
from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, read_header, stamp
from ottla.records.builder import assemble
from ottla.records.compression import Codec
from ottla.records.record import write_record
from ottla.storage.cleanup.compaction import Compaction, CompactionResult
from ottla.storage.cleanup.plan import plan_compaction
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.logs.builders import a_batch, a_disk, a_log, all_records, appended, end_transaction

ORDERS = TopicPartition("orders", 0)
COMPACTED = LogConfig(segment_bytes=400, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)


def a_marker_of_nothing(base_offset: int) -> bytearray:
    """The end of a transaction whose record has no key."""
    header = read_header(a_batch(producer_id=5, producer_epoch=0, base_offset=base_offset))
    area = bytearray()
    write_record(area, 0, 0, None, b"commit or abort?")
    return assemble(header._replace(attributes=CONTROL_BIT | TRANSACTIONAL_BIT), area, Codec.NONE)


def booted(disk: object, config: LogConfig) -> LogDirs:
    dirs = LogDirs(disk, ["/data"])  # type: ignore[arg-type]
    dirs.lock()
    dirs.open(config, {}, 0)
    return dirs


def with_a_marker_of_nothing(config: LogConfig, *, was_clean: bool) -> Log:
    """A log that others wrote, with such a marker and a transaction behind it, and started with again."""
    disk = a_disk()
    dirs = booted(disk, config)
    log = dirs.create(ORDERS, config, now_ms=0)
    appended(log, a_batch(b"old"))
    log.roll(0)
    dirs.close()
    content = a_marker_of_nothing(1)
    stamp(content, 0, 1, 0)
    disk.write_file(log.active_segment.path(".log"), content)
    if not was_clean:
        disk.remove("/data/.kafka_cleanshutdown")
    disk.kill()
    again = booted(disk, config)
    assert again.offline == {}
    return again.logs[ORDERS]


@pytest.mark.parametrize("was_clean", [True, False])
def test_marker_that_makes_no_sense_keeps_no_broker_from_starting(was_clean: bool) -> None:
    log = with_a_marker_of_nothing(LogConfig(), was_clean=was_clean)

    appended(
        log, a_batch(b"data", producer_id=5, producer_epoch=0, sequence=0, is_transactional=True), epoch=1
    )
    assert isinstance(end_transaction(log, 5, is_commit=False, epoch=1), Appended)

    assert log.end_offset == 4
    assert [entry.first_offset for entry in log.active_segment.aborted] == [2]


def cleaned(log: Log) -> None:
    log.roll(0)
    log.set_high_watermark(log.end_offset)
    plan = plan_compaction(log, 10_000)
    assert plan is not None
    result = Compaction(log.home.directory, plan)()
    assert isinstance(result, CompactionResult), result
    assert swap_in(log, result)


def test_marker_that_makes_no_sense_keeps_no_log_from_being_compacted() -> None:
    log = with_a_marker_of_nothing(COMPACTED, was_clean=True)
    appended(log, a_batch(b"new"), epoch=1)

    cleaned(log)

    assert [record.value for record in all_records(log)] == [b"new"]


def test_times_beyond_the_last_number_are_kept_by_compaction() -> None:
    log = a_log(COMPACTED)
    area = bytearray()
    for at, key in enumerate((b"a", b"b")):
        write_record(area, 5 * at, at, key, b"old")
    header = read_header(a_batch(b"1", b"2"))._replace(base_timestamp=2**63 - 1)
    appended(log, assemble(header, area, Codec.NONE))
    appended(log, a_batch(b"new", key=b"a"))

    cleaned(log)

    found = {record.key: (record.value, record.timestamp) for record in all_records(log)}
    assert found == {b"a": (b"new", 1_000), b"b": (b"old", 4 - 2**63)}
