"""What a start makes of a directory: a torn end is cut, everything else that is wrong is refused."""

from __future__ import annotations

import errno
from random import Random

import pytest

from ottla.keeper.files.errors import FilesRefused
from ottla.keeper.files.files import KeeperFiles
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.zookeeper.server.log_format import LOG_HEADER
from ottla.zookeeper.server.txn_codec import encode_txn
from ottla.zookeeper.server.txns import ErrorTxn, TxnHeader
from support.keeper.life import DIRECTORY, opened
from support.keeper.reference_tree import FRESH, ReferenceTree
from support.keeper.script import Script
from support.keeper.sealed import sealed

HOME = f"{DIRECTORY}/version-2"


@pytest.fixture
def disk() -> CrashDisk:
    disk = CrashDisk(Random(1))
    disk.make_directory("/disk")
    return disk


def write(disk: CrashDisk, turns: int, *, snapshot: bool = False) -> ReferenceTree:
    """Append as many entries, a sync each; then a snapshot, if one is wanted."""
    files, tree = opened(disk)
    script = Script(tree, Random(7), files.last_zxid)
    for _ in range(turns):
        files.append(*script.next())
        files.sync()
    if snapshot:
        files.begin_snapshot(script.zxid, dict(tree.sessions), tree.walk())
        while not files.write_some():
            pass
    files.close()
    return tree


def change(disk: CrashDisk, name: str, content: bytes) -> None:
    disk.write_file(f"{HOME}/{name}", content)


def content(disk: CrashDisk, name: str) -> bytes:
    return disk.read_file(f"{HOME}/{name}")


def names(disk: CrashDisk) -> set[str]:
    return {entry.name for entry in disk.list_directory(HOME)}


def refused(disk: CrashDisk) -> str:
    with pytest.raises(FilesRefused) as refusal:
        opened(disk)
    return str(refusal.value)


def starts_of_entries(log: bytes) -> list[int]:
    """Where entries begin; each was synced before the next."""
    starts, position = [], len(LOG_HEADER)
    while position < len(log):
        starts.append(position)
        position += 12 + int.from_bytes(log[position + 8 : position + 12], "big") + 1
    return starts


def test_empty_directory_begins_with_a_snapshot_of_the_fresh_nodes(disk: CrashDisk) -> None:
    files, tree = opened(disk)

    assert list(tree.walk()) == list(FRESH)
    assert files.last_zxid == 0
    assert names(disk) == {"snapshot.0"}


def test_each_life_begins_a_log_of_its_own(disk: CrashDisk) -> None:
    write(disk, 3)
    write(disk, 2)

    assert names(disk) == {"snapshot.0", "log.1", "log.4"}
    assert opened(disk)[0].last_zxid == 5


def test_second_process_is_refused(disk: CrashDisk) -> None:
    opened(disk)

    assert refused(disk) == (
        f"another process keeps its data in {DIRECTORY}: stop it, or choose another directory"
    )


def test_refused_directory_is_free_again(disk: CrashDisk) -> None:
    write(disk, 2)
    disk.remove(f"{HOME}/snapshot.0")

    assert refused(disk) == refused(disk)


@pytest.mark.parametrize("cut", [1, 5, 12, 13, 30])
def test_torn_last_entry_is_cut(disk: CrashDisk, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    write(disk, 5)
    log = content(disk, "log.1")
    change(disk, "log.1", log[:-cut])

    files, _ = opened(disk)

    assert files.last_zxid == 4
    assert content(disk, "log.1") == log[: starts_of_entries(log)[-1]]
    assert f"{HOME}/log.1: the last" in caplog.text


def test_zeros_behind_the_last_entry_are_its_end(disk: CrashDisk) -> None:
    tree = write(disk, 5)
    change(disk, "log.1", content(disk, "log.1") + bytes(3_000_000))

    assert opened(disk)[1].state() == tree.state()


@pytest.mark.parametrize("left", [0, 3, 16, 40])
def test_log_without_a_whole_entry_is_removed(disk: CrashDisk, left: int) -> None:
    tree = write(disk, 5)
    change(disk, "log.6", content(disk, "log.1")[:left])

    assert opened(disk)[1].state() == tree.state()
    assert names(disk) == {"snapshot.0", "log.1"}


def test_damage_that_a_later_entry_was_synced_behind_is_refused(disk: CrashDisk) -> None:
    write(disk, 5)
    log = bytearray(content(disk, "log.1"))
    place = starts_of_entries(bytes(log))[2]
    log[place + 20] ^= 1
    change(disk, "log.1", bytes(log))

    assert refused(disk) == (
        f"{HOME}/log.1 is damaged at {place}: an entry's checksum is wrong; "
        "restore the directory from a copy, or move it away to start empty"
    )


def test_zeros_between_synced_entries_are_refused(disk: CrashDisk) -> None:
    write(disk, 5)
    log = content(disk, "log.1")
    start, end = starts_of_entries(log)[1:3]
    change(disk, "log.1", log[:start] + bytes(end - start) + log[end:])

    assert f"log.1 is damaged at {start}: zeros stand where an entry should" in refused(disk)


def test_torn_write_of_several_entries_is_cut_though_later_ones_survived(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    script = Script(tree, Random(7))
    files.append(*script.next())
    files.sync()
    synced = len(content(disk, "log.1"))
    for _ in range(4):
        files.append(*script.next())
    files.sync()
    log = bytearray(content(disk, "log.1"))
    log[synced + 14] ^= 1
    change(disk, "log.1", bytes(log))
    disk.kill()

    assert opened(disk)[0].last_zxid == 1


def test_whole_entry_of_an_unknown_kind_is_refused(disk: CrashDisk) -> None:
    write(disk, 2)
    body = bytearray(encode_txn(TxnHeader(1, 1, 3, 1), ErrorTxn(0)))
    body[28:32] = (99).to_bytes(4, "big")
    change(disk, "log.1", content(disk, "log.1") + sealed(bytes(body)))

    assert "holds a txn of the unknown kind 99" in refused(disk)


def test_foreign_file_with_a_logs_name_is_refused(disk: CrashDisk) -> None:
    write(disk, 2)
    change(disk, "log.3", b"a text that somebody put here")

    assert "log.3 is damaged at 0: it does not begin as a log of ZooKeeper's" in refused(disk)


def test_missing_log_is_refused(disk: CrashDisk) -> None:
    for _ in range(3):
        write(disk, 2)
    disk.remove(f"{HOME}/log.3")

    assert refused(disk) == (
        f"{HOME}/log.5 goes on with zxid 0x5 after 0x2, and what was between them is missing: "
        "put the missing log back, or restore the directory from a copy, or move it away to start empty"
    )


def test_epoch_of_an_ensemble_begins_with_1(disk: CrashDisk) -> None:
    write(disk, 2)
    files, tree = opened(disk)
    files.append(*Script(tree, Random(1), 2**32).next())
    files.close()
    assert opened(disk)[0].last_zxid == 2**32 + 1
    disk.kill()

    files, tree = opened(disk)
    files.append(*Script(tree, Random(1), 2**33 + 1).next())
    files.close()
    assert "goes on with zxid 0x200000002 after 0x100000001" in refused(disk)


def test_damaged_snapshot_is_passed_over_for_the_one_before_it(
    disk: CrashDisk, caplog: pytest.LogCaptureFixture
) -> None:
    write(disk, 5, snapshot=True)
    tree = write(disk, 2)
    change(disk, "snapshot.5", content(disk, "snapshot.5")[:-1])

    assert opened(disk)[1].state() == tree.state()
    assert "snapshot.5 is not a whole snapshot (its end is missing): the one before it is used" in caplog.text


def test_directory_without_a_whole_snapshot_is_refused(disk: CrashDisk) -> None:
    write(disk, 2)
    change(disk, "snapshot.0", b"")
    assert "none of its snapshots is whole" in refused(disk)

    disk.remove(f"{HOME}/snapshot.0")
    assert "it has logs and no snapshot" in refused(disk)


def test_compressed_snapshot_is_refused(disk: CrashDisk) -> None:
    write(disk, 2)
    change(disk, "snapshot.2.gz", b"")

    assert "snapshot.2.gz is compressed, which this keeper does not read" in refused(disk)


def test_snapshot_that_is_ahead_of_the_logs_is_refused(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    script = Script(tree, Random(7))
    for _ in range(9):
        files.append(*script.next())
    files.begin_snapshot(4, {}, tree.walk())
    while not files.write_some():
        pass
    files.close()
    disk.remove(f"{HOME}/log.1")

    assert "the snapshot of zxid 0x4 has changes up to 0x" in refused(disk)
    assert "but the logs end at 0x4: put the missing log back" in refused(disk)


def test_files_of_others_and_unfinished_snapshots_do_no_harm(disk: CrashDisk) -> None:
    tree = write(disk, 3)
    change(disk, "currentEpoch", b"0")
    change(disk, "unfinished.snapshot.3", b"half")

    assert opened(disk)[1].state() == tree.state()
    assert names(disk) == {"snapshot.0", "log.1", "currentEpoch"}


def test_directory_that_the_disk_does_not_give_is_refused_with_its_reason(disk: CrashDisk) -> None:
    disk.fail = lambda operation: errno.EACCES if operation == "mkdir" else 0

    with pytest.raises(FilesRefused, match=rf"cannot keep data in {DIRECTORY} .*choose another directory"):
        KeeperFiles(disk, DIRECTORY).recover(FRESH)
