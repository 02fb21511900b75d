"""The simulated tree and the real server get the same operations and must give the same answers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from ottla.server.zk_blocking import BlockingZooKeeper
from ottla.sim.zookeeper_tree import ZooKeeperTree
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Exists,
    Found,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiRead,
    Op,
    SetData,
    Stat,
    WatchEvent,
)

PATHS = ("/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/p", "/seq")
SESSIONS = (11, 12)


def a_write(chance: random.Random) -> Any:
    path = chance.choice(PATHS)
    version = chance.choice([ANY_VERSION, ANY_VERSION, 0, 1, 2])
    kind = chance.randrange(10)
    if kind < 5:
        sequential = chance.random() < 0.2
        return Create(
            "/seq/n" if sequential else path,
            chance.choice([None, b"", b"data"]),
            ephemeral=chance.random() < 0.3,
            sequential=sequential,
        )
    if kind < 7:
        return Delete(path, version)
    return SetData(path, chance.randbytes(3), version) if kind < 9 else Check(path, version)


def an_operation(chance: random.Random) -> Op:
    path, watch = chance.choice(PATHS), chance.random() < 0.5
    kind = chance.randrange(12)
    if kind < 5:
        write = a_write(chance)
        return write if not isinstance(write, Check) else Multi((write,))
    if kind < 8:
        return Multi(tuple(a_write(chance) for _ in range(chance.randint(1, 4))))
    if kind < 9:
        return MultiRead(tuple(chance.choice([GetData, GetChildren])(p) for p in chance.sample(PATHS, 3)))
    return chance.choice([GetData, Exists, GetChildren])(path, watch)


@dataclass
class Normal:
    """Names for numbers that only one side chose: transaction ids by rank, sessions by number."""

    sessions: dict[int, int]
    zxids: dict[int, None] = field(default_factory=dict)

    def stat(self, stat: Stat | None) -> Any:
        if stat is None:
            return None
        return (
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.data_length,
            stat.num_children,
            self.sessions.get(stat.ephemeral_owner, 0),
            stat.czxid == stat.mzxid,
            stat.pzxid >= stat.czxid,
        )

    def result(self, result: Any) -> Any:
        match result:
            case Created():
                return "created", result.path, self.stat(result.stat)
            case DataSet() | Found():
                return type(result).__name__, self.stat(result.stat)
            case Data():
                return "data", result.data, self.stat(result.stat)
            case Children():
                return "children", tuple(sorted(result.names)), self.stat(result.stat)
            case MultiDone():
                return "done", tuple(self.result(part) for part in result.results)
            case _:
                return result


def drain(client: BlockingZooKeeper, count: int) -> list[WatchEvent]:
    """As many watch events as the tree fired, and none beyond them."""
    events: list[WatchEvent] = []
    while len(events) < count:
        event = client.events.get(timeout=5)
        if isinstance(event, WatchEvent):
            events.append(event)
    while not client.events.empty():
        assert not isinstance(client.events.get_nowait(), WatchEvent), "the real server fired one more"
    return events


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_answers_and_fires_as_the_real_server_does(zookeeper: Any, seed: int) -> None:
    chance = random.Random(seed)
    tree = ZooKeeperTree()
    for session in SESSIONS:
        tree.open_session(session)
    with BlockingZooKeeper(zookeeper.connect) as one, BlockingZooKeeper(zookeeper.connect) as two:
        clients = dict(zip(SESSIONS, (one, two), strict=True))
        real = Normal({client.session_id: number for number, client in clients.items()})
        simulated = Normal({number: number for number in SESSIONS})
        for _ in range(400):
            session = chance.choice(SESSIONS)
            operation = an_operation(chance)

            answered = clients[session].run(operation)
            expected, fired = tree.apply(operation, session, 0)

            assert real.result(answered) == simulated.result(expected), operation
            for number, client in clients.items():
                due = [event for owner, event in fired if owner == number]
                assert sorted(map(repr, drain(client, len(due)))) == sorted(map(repr, due)), operation


def test_a_session_that_ends_takes_its_ephemeral_nodes_on_both_sides(zookeeper: Any) -> None:
    tree = ZooKeeperTree()
    for session in SESSIONS:
        tree.open_session(session)
    with BlockingZooKeeper(zookeeper.connect) as watcher:
        with BlockingZooKeeper(zookeeper.connect) as owner:
            for operation in (Create("/a"), Create("/a/mine", ephemeral=True)):
                owner.run(operation)
                tree.apply(operation, 11, 0)
            for operation in (GetChildren("/a", watch=True), GetData("/a/mine", watch=True)):
                watcher.run(operation)
                tree.apply(operation, 12, 0)
        fired = tree.end_session(11)

        seen = drain(watcher, len(fired))

        assert sorted(map(repr, seen)) == sorted(repr(event) for _, event in fired)
        assert len(seen) == 2
        assert isinstance(watcher.run(GetChildren("/a")), Children)
        assert tree.apply(Exists("/a/mine"), 12, 0)[0] == watcher.run(Exists("/a/mine"))
