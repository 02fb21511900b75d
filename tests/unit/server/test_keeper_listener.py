"""The keeper's turns over its sockets: what is sent when, and whom a keeper that was held up gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from ottla.keeper.files.files import KeeperFiles
from ottla.keeper.node import Keeper, recovered_tree
from ottla.keeper.words import Report
from ottla.server.keeper.listener import HELD_UP_MS, KeeperConnection, KeeperEdge
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.zookeeper.server.server import Server, ServerConfig
from support.zookeeper.raw import CLOSE, CREATE, GET_DATA, PING, SET_DATA, create, integer, text

SESSION_MS = 10_000
CONNECT = bytes(4) + bytes(8) + integer(SESSION_MS) + bytes(8) + integer(16) + bytes(16) + b"\0"
BIG = bytes(900_000)


class Loop:
    """A loop whose clock moves by hand; its one timer is called late or not, as the test wants."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.soon: list[Callable[[], None]] = []
        self.later: list[Callable[[], None]] = []
        self.due_s = 0.0
        self.on_timer: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, _delay_s: float, callback: Callable[[], None]) -> None:
        """Only the ends of connections are asked for so."""
        self.later.append(callback)

    def call_at(self, when_s: float, callback: Callable[[], None]) -> Loop:
        self.due_s, self.on_timer = when_s, callback
        return self

    def cancel(self) -> None:
        self.on_timer = lambda: None

    def run_once(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

    def pass_to(self, now_s: float) -> None:
        """Every timer comes at its time until then."""
        while self.due_s <= now_s:
            self.now_s = max(self.now_s, self.due_s)
            self.on_timer()
            self.run_once()
        self.now_s = now_s


class Transport(asyncio.Transport):
    """A socket that takes everything at once."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.sent = b""
        self.closed = False
        self.aborted = False

    def writelines(self, data: Any) -> None:
        self.sent += b"".join(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Setting:
    def __init__(self) -> None:
        self.disk = CrashDisk(Random(1))
        self.disk.make_directory("/disk")
        self.loop = Loop()
        self.failures: list[Exception] = []
        files = KeeperFiles(self.disk, "/disk/keeper")
        now_ms = int(self.loop.time() * 1000)
        self.server = Server(ServerConfig(), recovered_tree(files), now_ms, 1_700_000_000_000)
        self.keeper = Keeper(self.server, files, Report(self.server, frozenset()))
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.edge = KeeperEdge(loop, self.keeper, 0, self.failures.append)

    def client(self) -> tuple[KeeperConnection, Transport]:
        """A client with a session."""
        protocol, transport = KeeperConnection(self.edge), Transport()
        protocol.connection_made(transport)
        protocol.data_received(framed(CONNECT))
        self.loop.run_once()
        transport.sent = b""
        return protocol, transport


def framed(frame: bytes) -> bytes:
    return integer(len(frame)) + frame


def asked(kind: int, body: bytes = b"") -> bytes:
    return framed(integer(7) + integer(kind) + body)


def set_data(path: str, data: bytes) -> bytes:
    return asked(SET_DATA, text(path) + text(data) + integer(-1))


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_an_event_waits_for_the_turn_that_writes_its_change_to_the_disk(setting: Setting) -> None:
    writer, _ = setting.client()
    watcher, seen = setting.client()
    writer.data_received(asked(CREATE, create("/big", BIG)) + asked(CREATE, create("/watched")))
    watcher.data_received(asked(GET_DATA, text("/watched") + b"\1"))
    setting.loop.run_once()
    seen.sent = b""

    reads = asked(GET_DATA, text("/big") + b"\0") * 6
    writer.data_received(reads + set_data("/watched", b"x"))
    watcher.data_received(asked(PING))
    setting.loop.run_once()

    assert setting.server.records, "the write waits for the next turn, after all those reads"
    assert seen.sent, "the ping is answered"
    assert b"/watched" not in seen.sent

    setting.loop.run_once()
    assert not setting.server.records
    assert b"/watched" in seen.sent


def test_nothing_is_sent_any_more_once_a_turn_could_not_be_written(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, seen = setting.client()

    def break_down() -> None:
        raise ValueError("a txn cannot be encoded")

    monkeypatch.setattr(setting.keeper._files, "sync", break_down)
    client.data_received(asked(CREATE, create("/a")))
    setting.loop.run_once()
    monkeypatch.undo()
    client.data_received(asked(PING))
    setting.loop.run_once()

    assert [str(error) for error in setting.failures] == ["a txn cannot be encoded"]
    assert seen.sent == b""


def test_a_keeper_that_was_held_up_hears_its_clients_before_it_ends_their_sessions(setting: Setting) -> None:
    client, _ = setting.client()
    setting.client()
    assert len(setting.server.tree.sessions) == 2

    setting.loop.now_s += 3 * SESSION_MS / 1000
    setting.loop.on_timer()  # A loop may call timers before it looks at sockets.
    setting.loop.run_once()
    client.data_received(asked(PING))
    setting.loop.run_once()
    assert len(setting.server.tree.sessions) == 2

    setting.loop.pass_to(setting.loop.now_s + HELD_UP_MS / 1000)
    assert list(setting.server.tree.sessions) == [client._connection.session]  # type: ignore[union-attr]


def test_a_silent_client_loses_its_session_at_its_time(setting: Setting) -> None:
    _, transport = setting.client()

    setting.loop.pass_to(setting.loop.now_s + SESSION_MS / 1000 - 0.001)
    assert not transport.closed
    setting.loop.pass_to(setting.loop.now_s + 2.001)

    assert transport.closed
    assert not setting.server.tree.sessions


def test_a_client_that_reads_nothing_any_more_cannot_keep_its_closed_connection(setting: Setting) -> None:
    client, transport = setting.client()
    client.data_received(asked(CLOSE))
    setting.loop.run_once()
    assert transport.closed
    assert not transport.aborted, "the answer may still be on its way"

    for callback in setting.loop.later:
        callback()

    assert transport.aborted


def test_a_turn_that_was_under_way_at_the_end_writes_nothing_once_the_directory_is_given_back(
    setting: Setting,
) -> None:
    client, transport = setting.client()
    client.data_received(asked(CREATE, create("/late")))
    setting.edge.end()
    setting.keeper.close()
    before = setting.disk.list_directory("/disk/keeper/version-2")

    setting.loop.run_once()

    assert setting.disk.list_directory("/disk/keeper/version-2") == before
    assert transport.aborted
    assert transport.sent == b""
