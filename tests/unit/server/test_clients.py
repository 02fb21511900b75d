"""Clients at the edge: where they come from, where we listen, and those that do not read."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.node import Node
from ottla.client.blocking.client import Client
from ottla.client.engine.engine import Engine
from ottla.launch.zookeeper_probe import accepts_sessions
from ottla.model.cluster import Endpoint
from ottla.server.edge import HANG_UP_SECONDS_MAX, RESTING_SECONDS, Edge
from ottla.server.listener import ClientConnection, Listener, plain_address
from ottla.server.peers import PeerConnection
from ottla.server.timers import SystemClock
from support.bench.node_bench import a_config

NO_HOST = "a..b"


@pytest.mark.parametrize(
    ("seen", "host"),
    [("::ffff:10.0.0.7", "10.0.0.7"), ("10.0.0.7", "10.0.0.7"), ("::1", "::1"), ("::ffff:7", "::ffff:7")],
)
def test_a_client_of_ipv4_has_its_own_address(seen: str, host: str) -> None:
    assert plain_address(seen) == host


def test_it_has_so_where_it_is_counted() -> None:
    edge = SimpleNamespace(
        first_frame_bytes_max=lambda listener: 100,
        loop=SimpleNamespace(time=lambda: 0.0),
        admit=lambda client: True,
    )
    transport: Any = SimpleNamespace(
        get_extra_info=lambda _name: ("::ffff:10.0.0.7", 1, 0, 0), set_write_buffer_limits=lambda high: None
    )
    client = ClientConnection(cast(Edge, edge), "PLAINTEXT")

    client.connection_made(transport)

    assert client.host == "10.0.0.7"


def addresses(*families: socket.AddressFamily) -> Any:
    """A name with a loopback address in each family, in this order."""
    places: dict[int, tuple[Any, ...]] = {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0, 0, 0)}
    return lambda *_arguments, **_options: [
        (family, socket.SOCK_STREAM, 6, "", places[family]) for family in families
    ]


def test_of_the_addresses_of_a_name_that_of_ipv4_is_listened_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", addresses(socket.AF_INET6, socket.AF_INET))

    listener = Listener(Endpoint("PLAINTEXT", "localhost", 0, "PLAINTEXT"), -1, -1)
    try:
        with pytest.raises(OSError, match="in use"), socket.socket() as same:
            same.bind(("127.0.0.1", listener.endpoint.port))
    finally:
        listener.close()


class ConnectedClient:
    """A connection as the edge sees it."""

    def __init__(self, last_active: float, *, is_closing: bool = False) -> None:
        self.last_active = last_active
        self.is_closing = is_closing
        self.done: list[str] = []

    def abort(self) -> None:
        self.done.append("abort")

    def close(self) -> None:
        self.done.append("close")

    def rest(self) -> None:
        self.done.append("rest")


def tended(idle_s: float, *, is_closing: bool = False, limit_ms: int = 600_000) -> list[str]:
    """What becomes of a client that was silent for so long."""

    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        config = a_config(**{"connections.max.idle.ms": str(limit_ms)})
        edge = Edge(loop, cast(Node, SimpleNamespace(config=config)), SystemClock())
        client = ConnectedClient(loop.time() - idle_s, is_closing=is_closing)
        edge._clients[1] = cast(ClientConnection, client)
        edge.tend_idle_clients()
        return client.done

    return asyncio.run(run())


def test_an_idle_client_is_let_go_whether_it_reads_or_not() -> None:
    assert tended(601) == ["abort"]
    assert tended(RESTING_SECONDS + 1) == ["rest"]
    assert tended(601, limit_ms=-1) == ["rest"]


def test_one_that_was_hung_up_on_has_a_while_to_read_the_rest() -> None:
    assert tended(HANG_UP_SECONDS_MAX - 1, is_closing=True, limit_ms=-1) == ["rest"]
    assert tended(HANG_UP_SECONDS_MAX + 1, is_closing=True, limit_ms=-1) == ["abort"]


def test_a_name_that_no_host_can_have_is_a_reason_and_no_accident() -> None:
    lost: list[str] = []

    async def open_peer() -> None:
        edge = SimpleNamespace(
            loop=asyncio.get_running_loop(), peer_lost=lambda _link, reason: lost.append(reason)
        )
        peer = PeerConnection(cast(Edge, edge), 1, "127.0.0.1:1")
        await peer._open(NO_HOST, 9092)

    asyncio.run(open_peer())
    with pytest.raises(OSError, match="is not a host name"):
        Listener(Endpoint("PLAINTEXT", NO_HOST, 0, "PLAINTEXT"), -1, -1)

    def fails(engine: Engine) -> Any:
        engine.refresh_soon()
        yield from ()

    with Client(f"{NO_HOST}:9092") as client:
        client.run(fails)
        client.run_until(lambda: client.engine.metadata_error is not None, 1000)
        assert f"{NO_HOST} is not a host name" in str(client.engine.metadata_error)
    assert f"no connection to {NO_HOST}:9092" in lost[0]
    assert not accepts_sessions(NO_HOST, 1, 0.1)
