"""Snapshots over many turns, and what is kept of them."""

from __future__ import annotations

from random import Random

import pytest

from ottla.keeper.files.files import KeeperFiles
from ottla.keeper.files.names import NumberedFile
from ottla.keeper.files.retention import logs_behind
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.zookeeper.ops import Acl
from ottla.zookeeper.server.snapshot_format import decode_snapshot
from ottla.zookeeper.server.txns import CreateTxn, SetAclTxn, TxnHeader
from support.keeper.life import DIRECTORY, opened
from support.keeper.reference_tree import ReferenceTree
from support.keeper.script import Script

HOME = f"{DIRECTORY}/version-2"
ADMINS = (Acl(31, "digest", "admin:secret"),)


@pytest.fixture
def disk() -> CrashDisk:
    disk = CrashDisk(Random(1))
    disk.make_directory("/disk")
    return disk


def take_snapshot(files: KeeperFiles, tree: ReferenceTree, zxid: int) -> None:
    files.begin_snapshot(zxid, dict(tree.sessions), tree.walk())
    while not files.write_some():
        pass


def names(disk: CrashDisk) -> set[str]:
    return {entry.name for entry in disk.list_directory(HOME)}


def test_snapshot_is_due_after_so_many_txns_recovered_ones_included(disk: CrashDisk) -> None:
    files, tree = opened(disk, snapshot_every=5)
    script = Script(tree, Random(3))
    for _ in range(4):
        files.append(*script.next())
    assert not files.is_snapshot_due
    files.close()

    files, tree = opened(disk, snapshot_every=5)
    files.append(*Script(tree, Random(3), 4).next())
    is_due_before = files.is_snapshot_due
    files.begin_snapshot(5, {}, tree.walk())
    assert (is_due_before, files.is_snapshot_due) == (True, False)


def test_snapshot_has_no_name_before_it_is_complete(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    files.append(*Script(tree, Random(3)).next())
    files.begin_snapshot(1, {}, tree.walk())

    assert not files.write_some(2)
    assert "snapshot.1" not in names(disk)
    assert not files.write_some(2)
    assert files.write_some(2)
    assert names(disk) == {"snapshot.0", "log.1", "snapshot.1"}
    assert files.write_some(2), "nothing is under way"


def test_three_snapshots_are_kept_and_the_logs_from_the_oldest_of_them_on(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    script = Script(tree, Random(3))
    for _ in range(5):
        for _ in range(10):
            files.append(*script.next())
        take_snapshot(files, tree, script.zxid)
    files.append(*script.next())
    files.sync()

    assert names(disk) == {"snapshot.1e", "snapshot.28", "snapshot.32", "log.1f", "log.29", "log.33"}
    files.close()
    assert opened(disk)[1].state() == tree.state()


def test_damaged_snapshot_does_not_count_among_the_three(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    script = Script(tree, Random(3))
    for _ in range(2):
        files.append(*script.next())
        take_snapshot(files, tree, script.zxid)
    files.close()
    disk.write_file(f"{HOME}/snapshot.2", b"")

    files, tree = opened(disk)
    files.append(*Script(tree, Random(3), 2).next())
    take_snapshot(files, tree, 3)

    assert names(disk) == {"snapshot.0", "snapshot.1", "snapshot.2", "snapshot.3", "log.1", "log.2", "log.3"}


def test_unfinished_snapshot_gives_way_to_the_next(disk: CrashDisk) -> None:
    files, tree = opened(disk)
    script = Script(tree, Random(3))
    files.append(*script.next())
    files.begin_snapshot(1, {}, tree.walk())
    files.write_some(1)
    files.append(*script.next())
    take_snapshot(files, tree, 2)
    files.close()

    assert opened(disk)[1].state() == tree.state()


def test_changes_while_a_snapshot_is_written_come_back_from_the_log(disk: CrashDisk) -> None:
    files, tree = opened(disk)

    def change(zxid: int, txn: CreateTxn | SetAclTxn) -> None:
        header = TxnHeader(1, zxid, zxid, zxid)
        tree.apply(header, txn)
        files.append(header, txn)

    change(1, CreateTxn("/x", b"", ADMINS, False, 1))
    files.begin_snapshot(1, {}, tree.walk())
    files.write_some(1)
    change(2, CreateTxn("/x/new", b"", (*ADMINS, *ADMINS), False, 1))
    change(3, SetAclTxn("/x", (Acl(1, "ip", "10.0.0.1"),), 1))
    while not files.write_some(1):
        pass
    files.close()

    stored = {node.path: node for node in decode_snapshot(disk.read_file(f"{HOME}/snapshot.1")).nodes}
    assert "/x/new" not in stored, "made meanwhile"
    assert stored["/x"].aversion == 1, "fuzzy"
    assert opened(disk)[1].state() == tree.state()


def test_logs_behind_a_zxid_begin_with_the_one_that_may_hold_the_next() -> None:
    logs = [NumberedFile(zxid, f"log.{zxid}") for zxid in (1, 5, 9)]

    assert [[log.zxid for log in logs_behind(logs, zxid)] for zxid in (0, 3, 4, 8, 20)] == [
        [1, 5, 9],
        [1, 5, 9],
        [5, 9],
        [9],
        [9],
    ]
    assert logs_behind([], 3) == []
