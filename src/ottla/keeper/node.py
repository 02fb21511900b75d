"""The keeper: the server and its log, joined so that nothing leaves before it is on the disk."""

from ottla.keeper.files.files import KeeperFiles
from ottla.keeper.words import Report
from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.server import Server
from ottla.zookeeper.server.tree import Tree


def recovered_tree(files: KeeperFiles) -> Tree:
    """The tree that the files hold: a snapshot, and the log behind it once more."""
    tree = Tree()
    recovered = files.recover(tree.dump())
    tree.load(recovered.sessions, recovered.nodes, recovered.zxid)
    for header, txn in recovered.txns:
        tree.apply(header, txn)
        tree.changes.clear()
    return tree


class Keeper:
    """One server. All that happens between ``begin_turn`` and ``end_turn`` is written to the log at once."""

    def __init__(self, server: Server, files: KeeperFiles, report: Report) -> None:
        self.server = server
        self.is_writing_snapshot = False
        """More turns are wanted, though nothing happens: each writes a part of the snapshot."""
        self._files = files
        self._report = report

    def begin_turn(self, now_ms: int, wall_ms: int) -> None:
        """Set the clocks."""
        self.server.begin_turn(now_ms, wall_ms)

    def end_turn(self) -> list[Connection]:
        """Write what was decided; returns the connections to which something may be sent now.

        Raises ``FilesFailed`` when the disk refuses; nothing may be sent any more.
        """
        server = self.server
        if server.asked:
            self._answer_words()
        if server.records:
            records, server.records = server.records, []
            for header, txn in records:
                self._files.append(header, txn)
            self._files.sync()
        self._write_snapshot()
        dirty, server.dirty = server.dirty, {}
        return list(dirty)

    def _write_snapshot(self) -> None:
        tree = self.server.tree
        if self._files.is_snapshot_due:
            self._files.begin_snapshot(tree.zxid, dict(tree.sessions), tree.dump())
        self.is_writing_snapshot = not self._files.write_some()

    def _answer_words(self) -> None:
        asked, self.server.asked = self.server.asked, []
        for connection, word in asked:
            connection.send(self._report.answer(word).encode())

    def close(self) -> None:
        """Give the files back."""
        self._files.close()
