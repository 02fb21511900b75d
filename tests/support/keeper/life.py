"""A scripted life of a keeper's files, to be cut short at any write, rename or fsync."""

from __future__ import annotations

from random import Random

from ottla.keeper.files.files import KeeperFiles
from ottla.keeper.node import recovered_tree
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.disk.port import Disk
from ottla.zookeeper.server.tree import Tree
from support.keeper.reference_tree import ReferenceTree, State
from support.keeper.script import Script

DIRECTORY = "/disk/keeper"
TURNS = 330
SNAPSHOT_EVERY = 60
RESTART_EVERY = 45


def opened(
    disk: Disk, snapshot_every: int = SNAPSHOT_EVERY, directory: str = DIRECTORY
) -> tuple[KeeperFiles, ReferenceTree]:
    """The files, and the tree that they hold."""
    files, tree = opened_by_keeper(disk, snapshot_every, directory)
    return files, copy_of(tree)


def opened_by_keeper(disk: Disk, snapshot_every: int, directory: str) -> tuple[KeeperFiles, Tree]:
    """The files, and the keeper's own tree."""
    files = KeeperFiles(disk, directory, snapshot_every=snapshot_every)
    return files, recovered_tree(files)


def copy_of(tree: Tree) -> ReferenceTree:
    """The same nodes and sessions, in the small tree."""
    copy = ReferenceTree()
    copy.sessions = dict(tree.sessions)
    for node in tree.dump():
        copy.add(node)
    return copy


class Life:
    """Appends, syncs, takes snapshots over many turns and restarts; knows every state there ever was."""

    def __init__(self, disk: CrashDisk, seed: int) -> None:
        self.states: dict[int, State] = {}
        """The tree and the sessions after each zxid."""
        self.synced_zxid = 0
        self._disk = disk
        self._random = Random(seed)
        self.states[0] = copy_of(Tree()).state()

    def run(self) -> None:
        script = self._start(0)
        for turn in range(1, TURNS + 1):
            self.turn(script)
            if turn % RESTART_EVERY == 0:
                self.files.close()
                script = self._start(script.zxid)
                assert script.tree.state() == self.states[script.zxid]

    def _start(self, zxid: int) -> Script:
        self.files, self._tree = opened_by_keeper(self._disk, SNAPSHOT_EVERY, DIRECTORY)
        return Script(copy_of(self._tree), self._random, zxid)

    def turn(self, script: Script) -> None:
        for _ in range(self._random.choice((1, 2, 3, 12))):
            header, txn = script.next()
            self._tree.apply(header, txn)
            self.files.append(header, txn)
            self.states[script.zxid] = script.tree.state()
        if self.files.is_snapshot_due:
            self.files.begin_snapshot(script.zxid, dict(self._tree.sessions), self._tree.dump())
        self.files.write_some(self._random.choice((1, 3, 7)))
        self.files.sync()
        self.synced_zxid = script.zxid
