"""Compaction: the newest record of every key stays, with everything else that must."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.records.batch import read_header
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record
from ottla.storage.cleanup.cleaner import Cleaner
from ottla.storage.cleanup.compaction import KEY_OVERHEAD_BYTES, Compaction, CompactionResult, Uncleanable
from ottla.storage.cleanup.plan import plan_compaction
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.logs.builders import (
    ORDERS_0,
    a_batch,
    a_disk,
    a_log,
    all_bytes,
    all_records,
    append,
    appended,
    end_transaction,
    files_of,
    headers_of,
    reopened,
)
from support.logs.truth import check_log

DAY_MS = 86_400_000


def compacted(**settings: object) -> LogConfig:
    return LogConfig(
        **{  # type: ignore[arg-type]
            "cleanup_policy": frozenset({"compact"}),
            "segment_bytes": 400,
            "index_interval_bytes": 100,
            "min_cleanable_dirty_ratio": 0.0,
            **settings,
        }
    )


def put(log: Log, *pairs: tuple[bytes, bytes | None], codec: Codec = Codec.NONE) -> Appended:
    records = [Record(key, value, timestamp=1_000 + log.end_offset) for key, value in pairs]
    return appended(log, build_batch(records, codec=codec))


def clean(log: Log, now_ms: int = 10_000, map_bytes_max: int = 1 << 20) -> CompactionResult | None:
    """Roll, replicate, and compact what can be."""
    log.roll(now_ms)
    log.set_high_watermark(log.end_offset)
    plan = plan_compaction(log, now_ms)
    if plan is None:
        return None
    result = Compaction(log.home.directory, plan, map_bytes_max)()
    assert isinstance(result, CompactionResult), result
    assert swap_in(log, result)
    check_log(log, is_dense=False)
    return result


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in all_records(log)]


def test_newest_record_of_each_key_stays_at_its_offset() -> None:
    log = a_log(compacted())
    for at in range(10):
        put(log, (b"a", b"a%d" % at), (b"b", b"b%d" % at))

    clean(log)

    assert contents(log) == [(18, b"a", b"a9"), (19, b"b", b"b9")]
    assert log.first_dirty_offset == log.end_offset == 20


def test_active_segment_is_left_alone() -> None:
    log = a_log(compacted(segment_bytes=100_000))
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.set_high_watermark(2)

    assert plan_compaction(log, 0) is None


def test_nothing_is_compacted_by_what_is_not_stable() -> None:
    """KAFKA-5490 and R17: bound by the last stable offset."""
    log = a_log(compacted())
    put(log, (b"a", b"committed"))
    log.roll(0)
    append(
        log, a_batch(b"open", key=b"a", producer_id=1, producer_epoch=0, sequence=0, is_transactional=True)
    )

    clean(log)

    assert (0, b"a", b"committed") in contents(log)


def test_clean_enough_log_waits() -> None:
    log = a_log(compacted(min_cleanable_dirty_ratio=0.9))
    for _ in range(10):
        put(log, (b"a", bytes(50)))
    assert clean(log) is not None
    for at in range(20):
        put(log, (b"key %d" % at, bytes(50)))
    clean(log)
    put(log, (b"a", b"x"))

    assert clean(log) is None


def test_old_dirt_does_not_wait_for_its_ratio() -> None:
    log = a_log(compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000))
    put(log, (b"a", b"1"))
    log.roll(0)
    log.set_high_watermark(1)

    assert plan_compaction(log, 1_500) is None
    assert plan_compaction(log, 2_500) is not None


def test_young_segments_wait_for_their_lag() -> None:
    log = a_log(compacted(min_compaction_lag_ms=5_000))
    put(log, (b"a", b"1"))

    assert clean(log, now_ms=5_999) is None
    assert clean(log, now_ms=6_001) is not None


def test_tombstone_stays_for_its_time_then_goes() -> None:
    """KAFKA-8351, 4529: readers must have had the chance to see it."""
    log = a_log(compacted(delete_retention_ms=DAY_MS))
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))

    clean(log, now_ms=10_000)
    assert (2, b"a", None) in contents(log)
    header = next(h for h in headers_of(all_bytes(log)) if h.base_offset == 2)
    assert header.delete_horizon_ms == 10_000 + DAY_MS
    assert [record.timestamp for record in all_records(log)] == [1_000, 1_002]

    put(log, (b"c", b"1"))
    clean(log, now_ms=10_000 + DAY_MS - 1)
    assert (2, b"a", None) in contents(log)

    put(log, (b"c", b"2"))
    clean(log, now_ms=10_000 + DAY_MS)
    assert (2, b"a", None) not in contents(log)
    assert (1, b"b", b"1") in contents(log)


def transaction(log: Log, value: bytes, *, is_commit: bool, key: bytes = b"a", pid: int = 1) -> None:
    producer = log.producers.get(pid)
    sequence = producer.last_sequence + 1 if producer is not None else 0
    batch = a_batch(
        value, key=key, producer_id=pid, producer_epoch=0, sequence=sequence, is_transactional=True
    )
    assert isinstance(append(log, batch), Appended)
    end_transaction(log, pid, is_commit=is_commit)


def test_aborted_records_go_and_shadow_nothing() -> None:
    log = a_log(compacted())
    put(log, (b"a", b"good"))
    transaction(log, b"aborted", is_commit=False)
    put(log, (b"z", b"z"))

    clean(log)

    assert contents(log) == [(0, b"a", b"good"), (3, b"z", b"z")]


def test_aborted_records_go_though_their_marker_lies_in_the_active_segment() -> None:
    log = a_log(compacted())
    put(log, (b"a", b"good"))
    append(
        log, a_batch(b"aborted", key=b"a", producer_id=1, producer_epoch=0, sequence=0, is_transactional=True)
    )
    log.roll(0)
    end_transaction(log, 1, is_commit=False)
    log.set_high_watermark(log.end_offset)
    plan = plan_compaction(log, 0)
    assert plan is not None

    result = Compaction(log.home.directory, plan)()
    assert isinstance(result, CompactionResult)
    swap_in(log, result)

    assert contents(log) == [(0, b"a", b"good")]
    check_log(log, is_dense=False)


def test_transaction_that_was_aborted_in_the_clean_part_hides_nothing_of_its_producer() -> None:
    log = a_log(compacted(segment_bytes=5_000))
    put(log, (b"K", b"old"))
    transaction(log, b"aborted", is_commit=False, key=b"A")
    put(log, (b"f1", b"1"))
    put(log, (b"f2", b"1"))
    transaction(log, b"new", is_commit=True, key=b"K")

    clean(log, map_bytes_max=2 * (len(b"f1") + KEY_OVERHEAD_BYTES))
    assert 2 < log.first_dirty_offset <= 5, "behind the aborted transaction, inside its segment"
    clean(log)

    assert [value for _, key, value in contents(log) if key == b"K"] == [b"new"]


def markers(log: Log) -> list[int]:
    return [header.base_offset for header in headers_of(all_bytes(log)) if header.is_control]


def test_marker_stays_until_its_records_are_gone_and_its_time_is_over() -> None:
    """KAFKA-7385, 14055."""
    log = a_log(compacted(delete_retention_ms=100))
    transaction(log, b"1", is_commit=True)
    transaction(log, b"x", is_commit=True, key=b"other", pid=2)
    put(log, (b"z", b"z"))
    clean(log, now_ms=1_000)
    assert markers(log) == [1, 3]

    put(log, (b"a", b"2"))
    put(log, (b"other", b"2"))
    clean(log, now_ms=2_000)
    put(log, (b"y", b"y"))
    clean(log, now_ms=3_000)
    put(log, (b"y", b"y2"))
    clean(log, now_ms=4_000)

    assert len(markers(log)) <= 2
    assert contents(log)[-1][1:] == (b"y", b"y2")


def test_last_batch_of_a_producer_stays_though_empty() -> None:
    """KAFKA-5490: else its next sequence would seem out of order."""
    log = a_log(compacted())
    append(log, a_batch(b"1", key=b"a", producer_id=9, producer_epoch=0, sequence=0))
    append(log, a_batch(b"2", key=b"a", producer_id=9, producer_epoch=0, sequence=1))
    put(log, (b"a", b"newer"))

    clean(log)

    kept = [header for header in headers_of(all_bytes(log)) if header.producer_id == 9]
    assert [(header.base_offset, header.base_sequence, header.record_count) for header in kept] == [(1, 1, 0)]
    again = reopened(log, was_clean=False)
    assert isinstance(append(again, a_batch(b"3", producer_id=9, producer_epoch=0, sequence=2)), Appended)


def test_records_of_compressed_batches_are_picked_out() -> None:
    log = a_log(compacted(segment_bytes=5_000))
    for codec in Codec:
        put(log, (b"a", bytes(100)), (b"only %d" % codec, b"stays"), codec=codec)

    clean(log)

    assert [(offset, key) for offset, key, _ in contents(log)] == [
        (1, b"only 0"),
        (3, b"only 1"),
        (5, b"only 2"),
        (7, b"only 3"),
        (8, b"a"),
        (9, b"only 4"),
    ]
    assert {header.codec_id for header in headers_of(all_bytes(log))} == set(Codec)


def test_small_segments_are_cleaned_into_one() -> None:
    log = a_log(compacted(segment_bytes=400))
    for at in range(30):
        put(log, (b"a", b"%d" % at))
    before = len(log.segments)

    clean(log)
    put(log, (b"a", b"last"))
    clean(log)

    assert before > 5
    assert len(log.segments) == 2, "all that was cleaned, and the active one"
    names = [name for name in files_of(log) if not name.endswith(".deleted")]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    snapshots = [int(name[:20]) for name in names if name.endswith(".snapshot")]
    assert set(snapshots) <= {segment.base_offset for segment in log.segments} | {log.end_offset}


def test_map_too_small_for_all_keys_goes_on_next_time() -> None:
    """KAFKA-3587: a full map must not end the cleaner."""
    log = a_log(compacted())
    for at in range(30):
        put(log, (b"key %d" % (at % 10), b"%d" % at))
    log.roll(0)

    rounds = 0
    while clean(log, map_bytes_max=600) is not None:
        rounds += 1
        assert rounds < 30

    assert rounds > 2
    newest = {key: offset for offset, key, _ in contents(log)}
    assert newest == {b"key %d" % (at % 10): at for at in range(20, 30)}


def test_result_for_a_log_that_was_truncated_is_thrown_away() -> None:
    """KAFKA-3330, 7278."""
    log = a_log(compacted())
    for at in range(10):
        put(log, (b"a", b"%d" % at))
    log.set_high_watermark(10)
    plan = plan_compaction(log, 0)
    assert plan is not None
    result = Compaction(log.home.directory, plan)()
    log.truncate_to(2)
    before = all_bytes(log)

    assert isinstance(result, CompactionResult)
    assert not swap_in(log, result)

    assert all_bytes(log) == before
    assert not [name for name in files_of(log) if name.endswith(".cleaned")]


def test_truncation_below_the_cleaned_part_makes_it_dirty_again() -> None:
    log = a_log(compacted())
    for at in range(10):
        put(log, (b"a", b"%d" % at))
    clean(log)

    log.truncate_to(4)

    assert log.first_dirty_offset == 4


@pytest.mark.parametrize("at", [69, 70, 77, 170])
def test_corrupt_batch_makes_the_log_uncleanable_and_nothing_else(at: int) -> None:
    log = a_log(compacted())
    for number in range(10):
        put(log, (b"a", b"%d" % number))
    log.set_high_watermark(10)
    disk = log.home.directory.disk
    path = log.segments[0].path(".log")
    broken = bytearray(disk.read_file(path))
    broken[at] ^= 1
    disk.write_file(path, broken)
    plan = plan_compaction(log, 0)
    assert plan is not None

    assert isinstance(Compaction(log.home.directory, plan)(), Uncleanable)

    assert log.home.directory.failure is None
    assert not [name for name in files_of(log) if name.endswith(".cleaned")]


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=6)), min_size=1, max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), PAIRS, st.sampled_from(Codec)),
        st.tuples(
            st.sampled_from(["commit", "abort"]),
            st.lists(st.tuples(KEYS, st.binary(max_size=6)), min_size=1, max_size=1),
            st.integers(1, 2),
        ),
        st.tuples(st.just("clean"), st.none(), st.integers(0, 200)),
        st.tuples(st.just("restart"), st.none(), st.booleans()),
    ),
    min_size=5,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_readers_of_a_compacted_log_find_the_same_table(steps: list[tuple[str, object, object]]) -> None:
    """R17 against a dictionary: same newest values, same offsets, order kept, tombstones not too early."""
    log = a_log(compacted(delete_retention_ms=100))
    truth: dict[bytes, tuple[int, bytes | None]] = {}
    now_ms = 10_000
    for step, what, how in steps:
        now_ms += 10
        if step == "put":
            for at, (key, value) in enumerate(what):  # type: ignore[arg-type]
                truth[key] = (log.end_offset + at, value)
            put(log, *what, codec=how)  # type: ignore[misc, arg-type]
        elif step in ("commit", "abort"):
            key, value = what[0]  # type: ignore[index]
            if step == "commit":
                truth[key] = (log.end_offset, value)
            transaction(log, value, is_commit=step == "commit", key=key, pid=how)  # type: ignore[arg-type]
        elif step == "clean":
            now_ms += how  # type: ignore[operator]
            clean(log, now_ms)
        else:
            if how:
                log.close()
            dirty = log.first_dirty_offset
            log = reopened(log, was_clean=bool(how), recovery_point=log.segments[-1].base_offset)
            log.first_dirty_offset = dirty
        check_table(log, truth)


def check_table(log: Log, truth: dict[bytes, tuple[int, bytes | None]]) -> None:
    log.set_high_watermark(log.end_offset)
    found = log.read(log.log_start_offset, 1 << 20, log.end_offset)
    aborted = {
        (each.producer_id, o)
        for segment in log.segments
        for each in segment.aborted
        for o in range(each.first_offset, each.last_offset)
    }
    assert found is not None
    table: dict[bytes, tuple[int, bytes | None]] = {}
    last = -1
    content = all_bytes(log)
    for header in headers_of(content):
        if header.is_control or (
            header.is_transactional and (header.producer_id, header.base_offset) in aborted
        ):
            continue
        for record in records_of(content, header.position):
            assert record.offset > last
            last = record.offset
            assert record.key is not None
            table[record.key] = (record.offset, record.value)
    values = {key: each for key, each in table.items() if each[1] is not None}
    assert values == {key: each for key, each in truth.items() if each[1] is not None}


def records_of(content: bytes, position: int) -> list[Record]:
    from ottla.records.record import read_records

    return list(read_records(content, read_header(content, position)))


def test_cleaner_takes_the_dirtiest_log_and_notes_how_far_it_came() -> None:
    disk = a_disk()
    dirs = LogDirs(disk, ["/data"])
    dirs.lock()
    dirs.open(LogConfig(), {}, 0)
    other = dirs.create(ORDERS_0._replace(partition=1), compacted(), now_ms=0)
    log = dirs.create(ORDERS_0, compacted(), now_ms=0)
    for at in range(10):
        put(log, (b"a", b"%d" % at))
    put(other, (b"a", b"1"))
    for each in (log, other):
        each.roll(0)
        each.set_high_watermark(each.end_offset)
    cleaner = Cleaner(dirs)

    run = cleaner.next_run(0)
    assert run is not None
    assert cleaner.next_run(0) is None, "one at a time"
    assert cleaner.finished(run, run.work())

    assert b"orders 0 10\n" in disk.read_file("/data/cleaner-offset-checkpoint") or run.log is other
    assert cleaner.next_run(0) is not None


def test_a_disk_that_cannot_be_read_while_planning_takes_its_directory_offline() -> None:
    """Seed 100131: the bare error came out of a timer, and nobody took the directory offline."""
    disk = a_disk()
    dirs = LogDirs(disk, ["/data"])
    dirs.lock()
    dirs.open(LogConfig(), {}, 0)
    log = dirs.create(ORDERS_0, compacted(), now_ms=0)
    for at in range(10):
        put(log, (b"a", b"%d" % at))
    log.roll(0)
    log.set_high_watermark(log.end_offset)
    dirs.close()
    dirs = LogDirs(disk, ["/data"])
    dirs.lock()
    dirs.open(LogConfig(), {"orders": compacted()}, 0)
    disk.fail = lambda operation: errno.EIO if operation == "read" else 0

    with pytest.raises(LogDirectoryFailed):
        Cleaner(dirs).next_run(0)
