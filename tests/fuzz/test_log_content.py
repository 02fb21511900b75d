"""Whatever a sound batch holds: no search, start or compaction takes it for a failure of the disk."""

from __future__ import annotations

import os
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.records.batch import stamp
from ottla.storage.cleanup.compaction import Compaction, CompactionResult
from ottla.storage.cleanup.plan import plan_compaction
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.log.log import Log
from support.logs.builders import a_batch, a_log, append, appended, found_by_time, reopened
from support.logs.crafted import TIMES_OF_RECORDS, as_marker, crafted
from support.logs.truth import check_data

TIMES = int(os.environ.get("OTTLA_FUZZ_N", "4000"))
SEED = os.environ.get("OTTLA_FUZZ_SEED", "content")
CONFIG = LogConfig(
    segment_bytes=900,
    index_interval_bytes=100,
    cleanup_policy=frozenset({"compact", "delete"}),
    min_cleanable_dirty_ratio=0.0,
)


@pytest.mark.slow
def test_no_content_of_a_sound_batch_fails_a_directory() -> None:
    random = Random(SEED)
    for _ in range(max(100, TIMES // 20)):
        log = a_log(CONFIG)
        for _ in range(random.randint(1, 8)):
            log = with_one_more(log, random)
        live(log, random)


def with_one_more(log: Log, random: Random) -> Log:
    """As a leader gets it from a producer, as a follower gets it, or as others have written it."""
    batch = bytearray(crafted(random))
    way = random.random()
    if way < 0.4:
        append(log, batch)
        return log
    if way < 0.8:
        stamp(batch, 0, log.end_offset, 0)
        log.append_as_follower(batch, now_ms=0)
        return log
    append(log, a_batch(b"t", producer_id=5, producer_epoch=0, sequence=0, is_transactional=True))
    return with_planted(log, bytearray(as_marker(bytes(batch), 5)))


def with_planted(log: Log, batch: bytearray) -> Log:
    """The log with a batch that no broker would take today."""
    appended(log, a_batch(b"before"))
    stamp(batch, 0, log.end_offset, 0)
    log.roll(0)
    log.close()
    log.home.directory.disk.write_file(log.active_segment.path(".log"), batch)
    again = reopened(log, was_clean=False, recovery_point=0)
    assert again.end_offset > log.end_offset
    return again


def live(log: Log, random: Random) -> None:
    look(log)
    log = reopened(log, was_clean=False, recovery_point=random.randint(0, log.end_offset))
    look(log)
    log.roll(10)
    log.set_high_watermark(log.end_offset)
    plan = plan_compaction(log, 10_000)
    if plan is not None:
        result = Compaction(log.home.directory, plan)()
        assert isinstance(result, CompactionResult), result
        assert swap_in(log, result)
    look(log)
    log.close()
    log = reopened(log, was_clean=True)
    look(log)
    apply_retention(log, 10**12)
    look(log)


def look(log: Log) -> None:
    for timestamp in (*TIMES_OF_RECORDS, 999, None):
        found = found_by_time(log, timestamp)
        if found is not None:
            assert -(2**63) <= found.timestamp < 2**63
            assert 0 <= found.offset < log.end_offset
    assert log.last_stable_offset <= log.end_offset
    check_data(log, is_dense=False)
    assert log.home.directory.failure is None
