"""The keeper over its files: nothing is sent before it is on the disk, and a start finds it again."""

from __future__ import annotations

import errno
from random import Random

import pytest

from ottla.keeper.files.errors import FilesFailed
from ottla.keeper.files.files import KeeperFiles
from ottla.keeper.node import Keeper, recovered_tree
from ottla.keeper.words import Report
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.server import Server, ServerConfig
from ottla.zookeeper.server.txns import StoredNode
from support.zookeeper.raw import CREATE, SET_DATA, create, integer, text

DIRECTORY = "/disk/keeper"
WALL_MS = 1_700_000_000_000
CONNECT = bytes(4) + bytes(8) + integer(10_000) + bytes(8) + integer(16) + bytes(16) + b"\0"


@pytest.fixture
def disk() -> CrashDisk:
    disk = CrashDisk(Random(1))
    disk.make_directory("/disk")
    disk.sync_directory("")
    return disk


class Client:
    """One client, each of whose requests is a turn."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._xid = 0
        self.connection: Connection = keeper.server.connect("127.0.0.1")
        self.turn(CONNECT)

    def ask(self, kind: int, body: bytes) -> list[Connection]:
        self._xid += 1
        return self.turn(integer(self._xid) + integer(kind) + body)

    def turn(self, frame: bytes) -> list[Connection]:
        self._keeper.begin_turn(1_000, WALL_MS)
        self._keeper.server.receive(self.connection, integer(len(frame)) + frame)
        return self._keeper.end_turn()


def a_keeper(disk: CrashDisk, snapshot_every: int = 1_000) -> Keeper:
    files = KeeperFiles(disk, DIRECTORY, snapshot_every=snapshot_every)
    server = Server(ServerConfig(), recovered_tree(files), 0, WALL_MS)
    return Keeper(server, files, Report(server, frozenset()))


def stored(keeper: Keeper) -> tuple[int, dict[int, int], list[StoredNode]]:
    tree = keeper.server.tree
    return tree.zxid, tree.sessions, sorted(tree.dump(), key=lambda node: node.path)


def set_data(path: str, data: bytes) -> bytes:
    return text(path) + integer(len(data)) + data + integer(-1)


def test_what_may_be_sent_survives_a_power_cut_with_its_session(disk: CrashDisk) -> None:
    keeper = a_keeper(disk)
    client = Client(keeper)
    client.ask(CREATE, create("/a"))
    client.ask(CREATE, create("/a/mine", flags=1))
    client.ask(CREATE, create("/a"))

    assert client.ask(SET_DATA, set_data("/a", b"x")) == [client.connection]
    disk.power_cut()

    again = a_keeper(disk)
    assert stored(again) == stored(keeper)
    assert again.server.tree.ephemerals == keeper.server.tree.ephemerals


def test_full_disk_lets_nothing_be_sent(disk: CrashDisk) -> None:
    keeper = a_keeper(disk)
    client = Client(keeper)
    disk.fail = lambda operation: errno.ENOSPC if operation == "write" else 0

    with pytest.raises(FilesFailed, match="free some space"):
        client.ask(CREATE, create("/a"))
    disk.fail = None
    with pytest.raises(FilesFailed, match="free some space"):
        client.ask(CREATE, create("/b"))

    keeper.close()
    assert "/a" not in a_keeper(disk).server.tree.nodes


def test_snapshot_is_written_over_turns_while_requests_go_on(disk: CrashDisk) -> None:
    keeper = a_keeper(disk, snapshot_every=1_200)
    client = Client(keeper)
    turns = 0
    for number in range(1_300):
        client.ask(CREATE, create(f"/n{number}"))
        turns += keeper.is_writing_snapshot
    assert turns == 2, "500 nodes a turn"

    keeper.close()
    names = {entry.name for entry in disk.list_directory(f"{DIRECTORY}/version-2")}
    assert names == {"snapshot.0", "snapshot.4b0", "log.1", "log.4b1"}
    assert stored(a_keeper(disk)) == stored(keeper)
