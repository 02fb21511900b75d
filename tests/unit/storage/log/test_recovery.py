"""Opening a partition's directory again: after a clean stop, after a crash, with anything broken in it."""

from __future__ import annotations

import errno

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.log.log import Log
from support.logs.builders import (
    a_batch,
    a_disk,
    a_log,
    all_bytes,
    append,
    appended,
    end_transaction,
    files_of,
    found_by_time,
    reopened,
    small_segments,
)
from support.logs.truth import check_log


def a_full_log(disk: CrashDisk | None = None) -> Log:
    """Several segments, epochs, producers and an aborted transaction."""
    log = a_log(small_segments(), disk)
    for at in range(12):
        appended(
            log,
            a_batch(bytes(40), producer_id=5, producer_epoch=0, sequence=at, timestamp=1_000 + at),
            epoch=at // 4,
        )
    append(log, a_batch(b"t", producer_id=6, producer_epoch=0, sequence=0, is_transactional=True), epoch=3)
    end_transaction(log, 6, is_commit=False, epoch=3)
    log.set_high_watermark(log.end_offset)
    return log


def disk_of(log: Log) -> CrashDisk:
    disk = log.home.directory.disk
    assert isinstance(disk, CrashDisk)
    return disk


def test_clean_restart_reads_no_more_than_the_tail() -> None:
    log = a_full_log()
    before, end = all_bytes(log), log.end_offset
    log.close()
    reads: list[str] = []
    disk_of(log).fail = lambda operation: reads.append(operation) or 0

    again = reopened(log, was_clean=True)

    assert reads.count("read") <= 3
    disk_of(log).fail = None
    assert (again.end_offset, again.high_watermark, again.recovery_point) == (end, end, end)
    assert again.epochs.entries() == log.epochs.entries()
    assert all_bytes(again) == before
    check_log(again)


def test_an_epoch_that_was_cut_off_does_not_come_back_with_the_next_start() -> None:
    """Seed 573041844: the leader believed that an epoch ended before its own records of it, and its follower
    cut them off, fetched them and cut them off for ever."""
    log = a_log()
    appended(log, a_batch(b"a"), epoch=0)
    appended(log, a_batch(b"b"), epoch=2)
    log.close()
    log = reopened(log, was_clean=True)

    log.truncate_to(1)
    appended(log, a_batch(b"c"), epoch=0)
    again = reopened(log, was_clean=False)

    assert again.end_offset == 2
    assert again.epochs.entries() == [(0, 0)]


def test_files_of_a_closed_log_are_kafkas() -> None:
    log = a_full_log()
    log.close()

    bases = [f"{segment.base_offset:020d}" for segment in log.segments]
    expected = {f"{base}{suffix}" for base in bases for suffix in (".log", ".index", ".timeindex")}
    expected |= {f"{base}.snapshot" for base in bases[1:]} | {f"{log.end_offset:020d}.snapshot"}
    expected |= {f"{bases[-1]}.txnindex", "leader-epoch-checkpoint"}
    assert set(files_of(log)) == expected


def test_killed_log_is_whole_again() -> None:
    log = a_full_log()
    before = all_bytes(log)

    again = reopened(log, was_clean=False)

    assert all_bytes(again) == before
    assert again.epochs.entries() == log.epochs.entries()
    assert again.active_segment.aborted == log.active_segment.aborted
    assert f"{again.end_offset:020d}.snapshot" in files_of(again)
    check_log(again)


def test_epoch_without_data_at_the_end_is_forgotten() -> None:
    log = a_full_log()
    log.epochs.assign(9, log.end_offset)
    log.close()

    assert reopened(log, was_clean=False).epochs.latest_epoch == 3


@pytest.mark.parametrize("garbage", [b"\0" * 700, b"garbage", bytes(a_batch(b"x", base_offset=14)[:-3])])
def test_garbage_behind_the_last_batch_is_cut_off(garbage: bytes) -> None:
    log = a_full_log()
    before = all_bytes(log)
    disk_of(log).open(log.active_segment.path(".log")).append(garbage)

    again = reopened(log, was_clean=False)

    assert all_bytes(again) == before
    check_log(again)


def test_garbage_is_cut_off_even_if_the_stop_was_called_clean() -> None:
    log = a_full_log()
    before = all_bytes(log)
    log.close()
    disk_of(log).open(log.active_segment.path(".log")).append(b"garbage")

    again = reopened(log, was_clean=True)

    assert all_bytes(again) == before
    check_log(again)


def test_bad_batch_takes_all_behind_it() -> None:
    log = a_full_log()
    segment = log.segments[1]
    batch = next(segment.scan(0))
    content = bytearray(disk_of(log).read_file(segment.path(".log")))
    content[batch.size + 70] ^= 0x40
    disk_of(log).write_file(segment.path(".log"), content)

    again = reopened(log, was_clean=False)

    assert again.end_offset == segment.base_offset + 1
    assert len(again.segments) == 2
    check_log(again)
    assert appended(again, a_batch(b"on"), epoch=9).base_offset == segment.base_offset + 1


def test_segments_below_the_recovery_point_are_not_scanned() -> None:
    log = a_full_log()
    log.flush()
    first = log.segments[0]
    content = bytearray(disk_of(log).read_file(first.path(".log")))
    content[70] ^= 1
    disk_of(log).write_file(first.path(".log"), content)

    assert reopened(log, was_clean=False).end_offset == log.end_offset


def test_recovery_point_beyond_the_end_is_lowered_to_it() -> None:
    """KAFKA-10101."""
    log = a_full_log()

    again = reopened(log, was_clean=False, recovery_point=10_000)

    assert again.recovery_point == again.end_offset
    check_log(again)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "zeros", "garbage"])
def test_broken_index_is_made_again(suffix: str, damage: str) -> None:
    """KAFKA-2012, 1758, 1112, 866, 804."""
    log = a_full_log()
    log.close()
    disk = disk_of(log)
    for segment in log.segments:
        path = segment.path(suffix)
        if not disk.exists(path):
            continue
        content = disk.read_file(path)
        if damage == "missing":
            disk.remove(path)
        else:
            broken = {
                "empty": b"",
                "cut": content[:-1],
                "zeros": bytes(len(content)),
                "garbage": b"\xfe" * len(content),
            }
            disk.write_file(path, broken[damage])

    again = reopened(log, was_clean=suffix != ".txnindex", recovery_point=0)

    assert all_bytes(again) == all_bytes(log)
    assert found_by_time(again, 1_005) == found_by_time(log, 1_005)
    check_log(again)
    if suffix == ".txnindex":
        assert again.active_segment.aborted == log.active_segment.aborted


def test_any_flipped_bit_of_an_offset_index_finds_every_offset_still() -> None:
    log = a_full_log()
    log.close()
    segment = log.segments[0]
    disk = disk_of(log)
    content = disk.read_file(segment.path(".index"))
    assert len(content) >= 16

    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        disk.write_file(segment.path(".index"), flipped)
        again = reopened(log, was_clean=True)
        for offset in range(again.segments[1].base_offset):
            found = again.read(offset, 1, again.end_offset)
            assert found is not None
            assert int.from_bytes(found.read()[:8], "big") == offset


@pytest.mark.parametrize("content", [b"", b"0\n1\n0 0", b"garbage", None])
def test_lost_epochs_are_read_from_the_batches(content: bytes | None) -> None:
    """KAFKA-16541: an epoch file torn by a power cut."""
    log = a_full_log()
    log.close()
    path = f"{log.path}/leader-epoch-checkpoint"
    if content is None:
        disk_of(log).remove(path)
    else:
        disk_of(log).write_file(path, content)

    assert reopened(log, was_clean=True).epochs.entries() == log.epochs.entries()


def test_index_without_its_log_is_removed() -> None:
    log = a_full_log()
    log.close()
    disk_of(log).write_file(log.home.file(999, ".index"), bytes(8))

    again = reopened(log, was_clean=True)

    assert "00000000000000000999.index" not in files_of(again)


def test_what_was_being_deleted_is_deleted() -> None:
    log = a_full_log()
    log.close()
    for name in ("00000000000000000000.log.deleted", "00000000000000000003.index.deleted"):
        disk_of(log).write_file(f"{log.path}/{name}", b"x")

    again = reopened(log, was_clean=True)

    assert not [name for name in files_of(again) if name.endswith(".deleted")]


def test_crash_between_making_a_segment_and_writing_to_it() -> None:
    """KAFKA-6492: the next start finds an empty segment and goes on in it."""
    log = a_full_log()
    end = log.end_offset
    log.roll(0)

    again = reopened(log, was_clean=False)

    assert (again.end_offset, again.active_segment.base_offset) == (end, end)
    assert appended(again, a_batch(b"on"), epoch=4).base_offset == end
    check_log(again)


def test_log_wholly_below_its_start_begins_anew_there() -> None:
    log = a_full_log()
    log.close()
    from ottla.storage.disk.directory import LogDirectory
    from ottla.storage.log.recovery import open_log

    again = open_log(
        LogDirectory(disk_of(log), log.directory),
        log.partition,
        log.config,
        was_clean=True,
        log_start_offset=500,
        now_ms=0,
    )

    assert (again.log_start_offset, again.end_offset) == (500, 500)
    assert appended(again, a_batch(b"a")).base_offset == 500


def test_stray_snapshots_are_removed_but_for_the_newest() -> None:
    log = a_full_log()
    log.close()
    for offset in (1, 2):
        disk_of(log).write_file(log.home.file(offset, ".snapshot"), b"stray")

    names = files_of(reopened(log, was_clean=True))

    assert "00000000000000000001.snapshot" not in names
    assert f"{log.end_offset:020d}.snapshot" in names


# -- a disk that refuses -------------------------------------------------------------------------------


def test_short_write_at_a_full_disk_leaves_no_half_batch_and_no_later_append() -> None:
    """The disk took part of a batch, then said ENOSPC."""
    disk = a_disk()
    log = a_log(LogConfig(), disk)
    appended(log, a_batch(bytes(50)))
    before = all_bytes(log)
    disk.capacity_bytes = disk._used_bytes() + 40

    with pytest.raises(LogDirectoryFailed):
        append(log, a_batch(bytes(50)))

    assert disk.read_file(log.active_segment.path(".log")) == before
    disk.capacity_bytes = None
    with pytest.raises(LogDirectoryFailed):
        append(log, a_batch(b"later"))
    with pytest.raises(LogDirectoryFailed):
        log.append_as_follower(a_batch(b"later", base_offset=1), now_ms=0)
    with pytest.raises(LogDirectoryFailed):
        log.read(0, 100, 1)
    again = reopened(log, was_clean=False)
    assert all_bytes(again) == before
    assert appended(again, a_batch(b"later")).base_offset == 1


@pytest.mark.parametrize("operation", ["write", "create", "fsync", "rename"])
def test_any_refusal_takes_the_directory_offline_and_loses_nothing(operation: str) -> None:
    """KAFKA-10778, 7866: after an I/O error nothing is appended until the log is opened again."""
    log = a_full_log()
    before, end = all_bytes(log), log.end_offset
    disk_of(log).fail = lambda each: errno.EIO if each == operation else 0

    def write_on() -> None:
        for _ in range(20):
            appended(log, a_batch(bytes(60)), epoch=4)
            log.flush()

    with pytest.raises(LogDirectoryFailed) as caught:
        write_on()

    assert caught.value.directory == log.directory
    disk_of(log).fail = None
    failed_at = log.end_offset
    with pytest.raises(LogDirectoryFailed):
        append(log, a_batch(b"later"))
    again = reopened(log, was_clean=False, recovery_point=0)
    assert again.end_offset == failed_at >= end
    assert all_bytes(again).startswith(before)
    check_log(again)


def test_read_error_is_the_directorys_failure_not_an_empty_answer() -> None:
    """KAFKA-8400."""
    log = a_full_log()
    disk_of(log).fail = lambda operation: errno.EIO if operation == "read" else 0

    with pytest.raises(LogDirectoryFailed):
        log.read(0, 100, 5)


def test_slice_that_fails_when_it_is_used_is_the_directorys_failure() -> None:
    log = a_full_log()
    found = log.read(0, 100, 5)
    assert found is not None
    disk_of(log).fail = lambda operation: errno.EIO if operation == "read" else 0

    with pytest.raises(LogDirectoryFailed):
        found.buffer()


# -- holes between segments ----------------------------------------------------------------------------


def a_log_that_lost_a_tail() -> Log:
    """The first segment lost its last batch with the power; the next one did not."""
    log = a_full_log()
    first = log.segments[0]
    *_, last = first.scan(0)
    disk_of(log).open(first.path(".log")).truncate(last.position)
    return log


def test_tail_lost_at_the_end_of_a_segment_takes_all_behind_it() -> None:
    log = a_log_that_lost_a_tail()

    again = reopened(log, was_clean=False, recovery_point=0, gaps_are_losses=True)

    assert again.end_offset == log.segments[1].base_offset - 1
    check_log(again)


def test_hole_in_a_log_that_another_wrote_is_believed() -> None:
    """Apache's followers of compacted leaders have such holes, and nobody vouched for them."""
    log = a_log_that_lost_a_tail()

    again = reopened(log, was_clean=False, recovery_point=0, gaps_are_losses=False)

    assert again.end_offset == log.end_offset
    check_log(again, is_dense=False)


def test_hole_that_a_leader_sent_is_vouched_for_and_survives_a_crash() -> None:
    log = a_log(small_segments())
    for offset in range(0, 300, 20):
        log.append_as_follower(a_batch(bytes(90), base_offset=offset, leader_epoch=1), now_ms=0)
    assert len(log.segments) > 2
    assert log.segments[1].base_offset % 20 == 0, "named after its first batch"
    noted = log.home.directory.recovery_points[log.partition]

    again = reopened(log, was_clean=False, recovery_point=noted, gaps_are_losses=True)

    assert again.end_offset == 281
    assert all_bytes(again) == all_bytes(log)
