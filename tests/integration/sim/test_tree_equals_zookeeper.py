"""The simulated tree and the real server get the same operations and must give the same answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.sim.machine.zookeeper import Session, ZooKeeperService
from ottla.sim.machine.zookeeper_server import ZooKeeperServer
from ottla.zookeeper.ops import (
    ANY_VERSION,
    AclFound,
    Check,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Exists,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiRead,
    Op,
    SessionConnected,
    SessionExpired,
    SessionSuspended,
    SetData,
    Stat,
    Sync,
    Synced,
    WatchEvent,
)
from support.wire.tcp_proxy import TcpProxy

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
    kind = chance.randrange(13)
    if kind == 12:
        return chance.choice([GetAcl, Sync])(path)
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
    """What both sides must say alike: sessions by number, and of transaction ids how they compare."""

    sessions: dict[int, int]

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
            case AclFound():
                return "acl", result.acl, self.stat(result.stat)
            case Synced():
                return "synced"
            case MultiDone():
                return "done", tuple(self.result(part) for part in result.results)
            case _:
                return result


def drain(client: BlockingZooKeeper, count: int) -> list[WatchEvent]:
    """As many watch events as the tree fired, and none beyond them."""
    events: list[WatchEvent] = []
    while len(events) < count:
        event = client.events.get(timeout=20)
        if isinstance(event, WatchEvent):
            events.append(event)
    while not client.events.empty():
        assert not isinstance(client.events.get_nowait(), WatchEvent), "the real server fired one more"
    return events


def await_event(client: BlockingZooKeeper, kind: type) -> Any:
    """The next event of a session, past whatever watches fired before it."""
    while not isinstance(event := client.events.get(timeout=20), kind):
        pass
    return event


class Both:
    """The tree and the real server, kept alike: sessions by number, each with a client of its own."""

    def __init__(self, connect: str, chance: random.Random) -> None:
        self.connect = connect
        self.chance = chance
        self.tree = ZooKeeperServer()
        self.clients: dict[int, BlockingZooKeeper] = {}
        self.real = Normal({})
        self.simulated = Normal({})
        self.held: dict[int, Session] = {}

    def open(self, number: int, connect: str | None = None, **options: int) -> None:
        client = BlockingZooKeeper(connect or self.connect, **options).open()
        self.clients[number] = client
        self.tree.open_session(number)
        self.real.sessions[client.session_id] = number
        self.simulated.sessions[number] = number
        self.held[number] = Session(Quiet(), number, 0, 0)

    def close(self, number: int) -> None:
        """A session ends in order; the others hear what it takes along."""
        self.clients.pop(number).close()
        self.compare_events(self.tree.end_session(number), f"the end of session {number}")

    def step(self, number: int, operation: Op) -> None:
        """The same operation on both; answers and watches must agree."""
        answered = self.clients[number].run(operation)
        expected, fired = self.tree.apply(operation, number, 0)
        assert self.real.result(answered) == self.simulated.result(expected), operation
        if getattr(operation, "watch", False):
            self.held[number].watches.answered(operation, expected)
        self.held[number].last_zxid = self.tree.zxid
        self.compare_events(fired, operation)

    def compare_events(self, fired: list[Any], what: object) -> None:
        for number, client in self.clients.items():
            due = [event for owner, event in fired if owner == number]
            assert sorted(map(repr, drain(client, len(due)))) == sorted(map(repr, due)), what
            for event in due:
                ZooKeeperService.hand_over(self.held[number], event)


class Quiet:
    """The owner of a session that keeps what it holds in mind, and nothing else."""

    host, is_running, is_paused, life = "test", True, False, 1

    def on_zk_event(self, event: Any) -> None: ...

    def on_zk_result(self, token: int, result: Any) -> None: ...


@contextmanager
def both(zookeeper: Any, seed: int) -> Iterator[Both]:
    pair = Both(zookeeper.connect, random.Random(seed))
    with ExitStack() as stack:
        stack.callback(lambda: [client.close() for client in pair.clients.values()])
        yield pair


@pytest.mark.parametrize("seed", range(2))
def test_sessions_come_and_go_in_the_midst_of_operations(zookeeper: Any, seed: int) -> None:
    with both(zookeeper, seed) as pair:
        last = 0
        for _ in range(250):
            if len(pair.clients) < 3:
                last += 1
                pair.open(last)
            elif pair.chance.random() < 0.06:
                pair.close(pair.chance.choice(sorted(pair.clients)))
                continue
            pair.step(pair.chance.choice(sorted(pair.clients)), an_operation(pair.chance))
        assert last > 8


@pytest.mark.parametrize("seed", range(2))
def test_whoever_was_away_hears_the_same_when_it_returns(zookeeper: Any, seed: int) -> None:
    """A client names the watches it holds; what changed meanwhile fires, the rest is armed again."""
    address, _, chroot = zookeeper.connect.partition("/")
    with both(zookeeper, seed) as pair, TcpProxy.to(address) as proxy:
        pair.open(11, f"{proxy.address}/{chroot}", session_timeout_ms=20_000)
        pair.open(12)
        away = pair.clients[11]
        for _ in range(4):
            for _ in range(40):
                pair.step(pair.chance.choice(SESSIONS), an_operation(pair.chance))
            proxy.refuse()
            await_event(away, SessionSuspended)
            del pair.clients[11]
            for _ in range(15):
                pair.step(12, an_operation(pair.chance))
            proxy.heal()
            assert not await_event(away, SessionConnected).is_new
            pair.clients[11] = away
            held = pair.held[11]
            fired = pair.tree.watch_again(11, held.last_zxid, held.watches)
            pair.compare_events(fired, "the return")


def test_an_expired_session_takes_its_nodes_along_on_both_sides(zookeeper: Any) -> None:
    address, _, chroot = zookeeper.connect.partition("/")
    with both(zookeeper, 1) as pair, TcpProxy.to(address) as proxy:
        pair.open(11, f"{proxy.address}/{chroot}", session_timeout_ms=2_000)
        pair.open(12)
        for operation in (Create("/a"), Create("/a/mine", ephemeral=True), Create("/b", ephemeral=True)):
            pair.step(11, operation)
        for watch in (
            GetChildren("/a", watch=True),
            Exists("/b", watch=True),
            GetData("/a/mine", watch=True),
        ):
            pair.step(12, watch)
        proxy.refuse()
        silent = pair.clients.pop(11)

        fired = pair.tree.end_session(11)
        pair.compare_events(fired, "the expiry")

        assert len(fired) == 3
        proxy.heal()
        assert await_event(silent, SessionExpired)
        pair.step(12, GetChildren("/a"))
        silent.close()


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_answers_and_fires_as_the_real_server_does(zookeeper: Any, seed: int) -> None:
    chance = random.Random(seed)
    tree = ZooKeeperServer()
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
    tree = ZooKeeperServer()
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
