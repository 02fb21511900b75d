"""Several log directories: opened, claimed, filled, lost, closed."""

from __future__ import annotations

import errno
from random import Random

import pytest

from ottla.config.log import LogConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import TopicId, TopicPartition
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.directories.opening import CannotStart
from ottla.storage.disk.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.disk.file_names import partition_of
from support.logs.builders import a_batch, append, appended

PATHS = ("/a", "/b")
TOPIC_ID = TopicId(bytes(range(16)))
TOKEN = "0123456789abcdef" * 2
CONFIG = LogConfig(segment_bytes=400)


def a_machine() -> CrashDisk:
    return CrashDisk(Random(0))


def booted(disk: CrashDisk, broker_id: int = 1, cluster_id: str = "c") -> LogDirs:
    dirs = LogDirs(disk, PATHS)
    dirs.lock()
    dirs.claim(broker_id, cluster_id, "today")
    dirs.open(CONFIG, {}, 0)
    return dirs


def orders(partition: int) -> TopicPartition:
    return TopicPartition("orders", partition)


def test_new_logs_go_where_the_fewest_are() -> None:
    dirs = booted(a_machine())

    for at in range(5):
        dirs.create(orders(at), CONFIG, topic_id=TOPIC_ID, now_ms=0)

    counts = [sum(log.directory == path for log in dirs.logs.values()) for path in PATHS]
    assert sorted(counts) == [2, 3]


def test_creating_a_log_twice_gives_the_same() -> None:
    dirs = booted(a_machine())

    assert dirs.create(orders(0), CONFIG, now_ms=0) is dirs.create(orders(0), CONFIG, now_ms=0)


def test_everything_is_there_after_a_clean_stop() -> None:
    disk = a_machine()
    dirs = booted(disk)
    for at in range(3):
        log = dirs.create(orders(at), CONFIG, topic_id=TOPIC_ID, now_ms=0)
        for _ in range(10):
            appended(log, a_batch(bytes(50)), epoch=2)
        log.set_high_watermark(7)
        log.raise_log_start_offset(3)
    dirs.close()
    assert disk.read_file("/a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'

    again = booted(disk)

    assert not disk.exists("/a/.kafka_cleanshutdown"), "the marker is spent at once"
    for at in range(3):
        found = again.get(orders(at))
        assert found is not None
        assert found.was_clean
        assert (found.log_start_offset, found.high_watermark, found.end_offset) == (3, 7, 10)
        assert found.topic_id == TOPIC_ID
        assert found.epochs.entries() == [(2, 3)]


def test_crash_while_loading_is_no_clean_stop() -> None:
    """KAFKA-10471, 15375: the marker of the stop before last says nothing."""
    disk = a_machine()
    dirs = booted(disk)
    dirs.create(orders(0), CONFIG, now_ms=0)
    dirs.close()
    booted(disk)
    disk.kill()

    again = booted(disk)

    assert [log.was_clean for log in again.logs.values()] == [False]


def test_directory_that_fails_while_loading_gets_no_clean_marker() -> None:
    disk = a_machine()
    dirs = booted(disk)
    for at in range(2):
        dirs.create(orders(at), CONFIG, now_ms=0, directory=PATHS[at])
    dirs.close()
    again = LogDirs(disk, PATHS)
    again.lock()
    lists = 0

    def fail_second_listing(operation: str) -> int:
        nonlocal lists
        lists += operation == "list"
        return errno.EIO if operation == "list" and lists == 2 else 0

    disk.fail = fail_second_listing
    again.open(CONFIG, {}, 0)
    disk.fail = None
    assert list(again.offline) == ["/a"]
    assert list(again.logs) == [orders(1)]

    again.close()

    assert not disk.exists("/a/.kafka_cleanshutdown")
    assert disk.exists("/b/.kafka_cleanshutdown")


def test_locked_directories_are_another_brokers() -> None:
    disk = a_machine()
    first = booted(disk)

    with pytest.raises(CannotStart):
        LogDirs(disk, PATHS).lock()

    first.close()
    LogDirs(disk, PATHS).lock()


@pytest.mark.parametrize(("broker_id", "cluster_id"), [(2, "c"), (1, "other")])
def test_directories_of_another_owner_are_refused(broker_id: int, cluster_id: str) -> None:
    disk = a_machine()
    booted(disk).close()

    with pytest.raises(CannotStart):
        booted(disk, broker_id, cluster_id)


def test_meta_properties_of_a_newer_kind_are_refused() -> None:
    disk = a_machine()
    booted(disk).close()
    disk.write_file("/b/meta.properties", b"version=1\nnode.id=1\ncluster.id=c\n")

    with pytest.raises(CannotStart):
        booted(disk)


def test_directories_must_agree_on_their_owner() -> None:
    disk = a_machine()
    booted(disk).close()
    disk.write_file("/b/meta.properties", b"version=0\nbroker.id=9\ncluster.id=c\n")

    with pytest.raises(CannotStart):
        booted(disk)


def test_failed_directory_takes_only_its_own_logs() -> None:
    """Q5."""
    disk = a_machine()
    dirs = booted(disk)
    logs = [dirs.create(orders(at), CONFIG, now_ms=0) for at in range(4)]
    failing = [log for log in logs if log.directory == "/a"]
    disk.fail = lambda operation: errno.EIO if operation == "write" else 0
    with pytest.raises(LogDirectoryFailed) as caught:
        append(failing[0], a_batch(b"x"))
    disk.fail = None

    gone = dirs.take_offline(caught.value.directory, caught.value.reason)

    assert set(gone) == {log.partition for log in failing}
    assert dirs.live_paths == ["/b"]
    with pytest.raises(LogDirectoryFailed):
        append(failing[1], a_batch(b"x"))
    for log in dirs.logs.values():
        appended(log, a_batch(b"x"))
    assert dirs.create(orders(9), CONFIG, now_ms=0).directory == "/b"


def test_deleted_log_is_renamed_now_and_removed_later() -> None:
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0)
    appended(log, a_batch(b"x"))

    dirs.delete(orders(0), token=TOKEN)

    assert dirs.get(orders(0)) is None
    assert disk.exists(f"/a/orders-0.{TOKEN}-delete/00000000000000000000.log")
    dirs.remove_garbage(0)
    dirs.remove_garbage(59_999)
    assert disk.exists(f"/a/orders-0.{TOKEN}-delete")
    dirs.remove_garbage(60_000)
    assert not disk.exists(f"/a/orders-0.{TOKEN}-delete")


def test_long_topic_names_are_cut_to_fit() -> None:
    disk = a_machine()
    dirs = booted(disk)
    partition = TopicPartition("t" * 249, 1234)
    dirs.create(partition, CONFIG, now_ms=0)

    dirs.delete(partition, token=TOKEN)

    names = [entry.name for entry in disk.list_directory("/a") if entry.name.endswith("-delete")]
    assert [len(name) for name in names] == [255]


def test_log_made_again_inherits_nothing_from_the_one_that_was_deleted() -> None:
    """Its old checkpoints would make a crash look like a log that lost its beginning."""
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0)
    for _ in range(30):
        appended(log, a_batch(bytes(50)))
    log.set_high_watermark(30)
    log.raise_log_start_offset(29)
    log.flush()
    dirs.checkpoints.write_recovery_points()
    dirs.checkpoints.write_high_watermarks()

    dirs.delete(orders(0), token=TOKEN)
    made = dirs.create(orders(0), CONFIG, now_ms=0, directory="/a")
    for _ in range(12):
        appended(made, a_batch(bytes(50)))
    disk.kill()

    again = booted(disk).get(orders(0))
    assert again is not None
    assert (again.log_start_offset, again.high_watermark, again.end_offset) == (0, 0, 12)
    assert again.recovery_point == 0


def test_segments_of_a_log_that_is_gone_wait_for_no_flush() -> None:
    dirs = booted(a_machine())
    log = dirs.create(orders(0), CONFIG, now_ms=0, directory="/a")
    for _ in range(9):
        appended(log, a_batch(bytes(50)))
    assert dirs.directories["/a"].rolled == {orders(0)}

    dirs.delete(orders(0), token=TOKEN)

    assert dirs.directories["/a"].rolled == set()


def test_logs_that_are_gone_are_forgotten_with_the_next_checkpoint() -> None:
    disk = a_machine()
    dirs = booted(disk)
    for at in range(4):
        log = dirs.create(orders(at), CONFIG, now_ms=0, directory="/a")
        appended(log, a_batch(bytes(50)))
        log.set_high_watermark(1)
    dirs.checkpoints.write_recovery_points()
    dirs.checkpoints.write_high_watermarks()
    for at in range(3):
        dirs.delete(orders(at), token=TOKEN)

    dirs.checkpoints.write_recovery_points()

    assert dirs.directories["/a"].forgotten == set()
    assert read_offsets(disk, "/a", RECOVERY_POINTS) == {orders(3): 0}
    assert read_offsets(disk, "/a", HIGH_WATERMARKS) == {orders(3): 1}


def test_leftovers_of_deletions_and_moves_are_no_partitions() -> None:
    disk = a_machine()
    dirs = booted(disk)
    dirs.create(orders(0), CONFIG, now_ms=0)
    dirs.delete(orders(0), token=TOKEN)
    disk.make_directory(f"/a/orders-1.{TOKEN}-future")
    disk.make_directory("/a/lost+found")
    dirs.close()

    again = booted(disk)

    assert again.logs == {}
    again.remove_garbage(0)
    again.remove_garbage(60_000)
    assert not disk.exists(f"/a/orders-0.{TOKEN}-delete")
    assert disk.exists(f"/a/orders-1.{TOKEN}-future")


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", orders(0)),
        ("a-b.c_d-17", TopicPartition("a-b.c_d", 17)),
        ("orders-2147483647", orders(2**31 - 1)),
        ("orders-2147483648", None),
        ("backup-20260101120000", None),
        ("orders-007", None),
        ("orders-٣", None),
        ("orders", None),
        ("-1", None),
        ("x-", None),
    ],
)
def test_partition_is_told_by_its_directorys_name(name: str, partition: TopicPartition | None) -> None:
    assert partition_of(name) == partition


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
@pytest.mark.parametrize("content", [b"", b"garbage", b"0\n5\n"])
def test_broken_checkpoint_does_not_keep_a_broker_from_starting(name: str, content: bytes) -> None:
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0)
    appended(log, a_batch(b"x"))
    dirs.close()
    for path in PATHS:
        disk.write_file(f"{path}/{name}", content)

    again = booted(disk)

    assert again.offline == {}
    assert again.logs[orders(0)].end_offset == 1


def test_finished_segments_are_synced_and_the_recovery_point_follows() -> None:
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0)
    for _ in range(8):
        appended(log, a_batch(bytes(50)))
    assert log.recovery_point == 0

    due = dirs.flushes_due(0)
    for each, work in due:
        work()
        each.flushed(work, 0)

    assert [each for each, _ in due] == [log]
    assert log.recovery_point == 8
    assert dirs.flushes_due(0) == []
    dirs.checkpoints.write_recovery_points()
    assert b"orders 0 8\n" in disk.read_file("/a/recovery-point-offset-checkpoint")


def test_checkpoint_under_way_is_not_begun_twice() -> None:
    dirs = booted(a_machine())
    works = dirs.checkpoints.high_watermark_work()
    assert len(works) == 2

    assert dirs.checkpoints.high_watermark_work() == []
    for work in works:
        work()
        work.put_in_place()

    assert len(dirs.checkpoints.high_watermark_work()) == 2


@pytest.mark.parametrize("is_written_before", [True, False])
def test_high_watermark_of_a_deleted_log_does_not_come_back_with_a_late_checkpoint(
    is_written_before: bool,
) -> None:
    """A log made again meanwhile would have records committed that nobody else has."""
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0, directory="/a")
    for _ in range(5):
        appended(log, a_batch(bytes(50)))
    log.set_high_watermark(5)
    work = dirs.checkpoints.high_watermark_work()[0]
    if is_written_before:
        work()

    dirs.delete(orders(0), token=TOKEN)
    made = dirs.create(orders(0), CONFIG, now_ms=0, directory="/a")
    for _ in range(5):
        appended(made, a_batch(bytes(50)))
    if not is_written_before:
        work()
    work.put_in_place()
    disk.kill()

    again = booted(disk)
    assert again.logs[orders(0)].high_watermark == 0
    assert again.offline == {}
    assert [each.name for each in disk.list_directory("/a") if each.name.endswith(".tmp")] == []


@pytest.mark.parametrize("step", range(1, 4))
def test_loop_that_checkpoints_in_the_midst_of_a_worker_disturbs_nobody(step: int) -> None:
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), CONFIG, now_ms=0, directory="/a")
    appended(log, a_batch(bytes(50)))
    log.set_high_watermark(1)
    work = dirs.checkpoints.high_watermark_work()[0]
    left = step

    def checkpoint_at_that_step(_: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            disk.before_step = None
            dirs.checkpoints.write_all(dirs.directories["/a"])

    disk.before_step = checkpoint_at_that_step
    work()
    work.put_in_place()

    assert left == 0
    assert dirs.offline == {}
    assert read_offsets(disk, "/a", HIGH_WATERMARKS) == {orders(0): 1}


def test_retention_notes_the_start_of_a_log_before_it_deletes() -> None:
    disk = a_machine()
    dirs = booted(disk)
    log = dirs.create(orders(0), LogConfig(segment_bytes=400, retention_bytes=400), now_ms=0)
    for _ in range(20):
        appended(log, a_batch(bytes(50)))
    log.set_high_watermark(20)
    noted: list[bytes] = []

    def see(step: str) -> None:
        if step == "rename" and disk.exists("/a/log-start-offset-checkpoint"):
            noted.append(disk.read_file("/a/log-start-offset-checkpoint"))

    disk.before_step = see
    gone = apply_retention(log, 0)

    assert gone
    assert b"orders 0 %d\n" % log.log_start_offset in noted[-1]


def test_mark_of_use_stands_while_ottla_writes_and_goes_with_a_clean_stop() -> None:
    disk = a_machine()
    dirs = booted(disk)
    assert disk.exists("/a/.ottla_in_use")

    dirs.close()

    assert not disk.exists("/a/.ottla_in_use")
