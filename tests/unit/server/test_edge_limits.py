"""Which connections a broker lets in when there are many."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from ottla.broker.node import Node
from ottla.security.principal import Principal
from ottla.security.tls.stores import der_of
from ottla.server.edge import Edge
from ottla.server.listener import ClientConnection
from ottla.server.timers import SystemClock
from support.bench.node_bench import a_config
from support.security.tls import of_alice

THREE_LISTENERS = {
    "listeners": "CLIENTS://one:9092,BROKERS://one:9093,CONTROL://one:9094",
    "listener_security_protocol_map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROL:PLAINTEXT",
    "inter_broker_listener_name": "BROKERS",
    "control_plane_listener_name": "CONTROL",
}


class CountingNode:
    """A node that only takes note of its clients."""

    is_started = True

    def __init__(self, **settings: object) -> None:
        self.config = a_config(**settings)
        self.clients: set[int] = set()
        self.principals: list[object] = []

    def on_client_connected(self, connection: int, listener: str, host: str, principal: object) -> None:
        self.clients.add(connection)
        self.principals.append(principal)

    def on_client_lost(self, connection: int) -> None:
        self.clients.discard(connection)

    def take_outputs(self) -> list[Any]:
        return []

    def next_deadline_ms(self) -> None:
        return None


class FakeTransport:
    """A connection that ends as soon as it is told to."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self.is_open = True

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("10.0.0.7", 4711)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open = False
        self._client.connection_lost(None)


def with_edge(settings: dict[str, object], play: Callable[[Callable[[str], FakeTransport]], None]) -> None:
    """Play with an edge of these settings; the given function connects to a listener."""

    async def run() -> None:
        edge = Edge(asyncio.get_running_loop(), cast(Node, CountingNode(**settings)), SystemClock())
        moment = 0.0

        def connect(listener: str) -> FakeTransport:
            nonlocal moment
            moment += 1
            client = ClientConnection(edge, listener)
            transport = FakeTransport(client)
            client.connection_made(cast(asyncio.BaseTransport, transport))
            client.last_active = moment
            return transport

        play(connect)

    asyncio.run(run())


def test_brokers_and_the_controller_are_let_in_and_the_most_silent_client_makes_way() -> None:
    def play(connect: Callable[[str], FakeTransport]) -> None:
        clients = [connect("CLIENTS") for _ in range(3)]
        assert [client.is_open for client in clients] == [True, True, True]
        assert not connect("CLIENTS").is_open

        broker = connect("BROKERS")
        assert broker.is_open
        assert [client.is_open for client in clients] == [False, True, True]
        controller = connect("CONTROL")
        assert controller.is_open
        assert [client.is_open for client in clients] == [False, False, True]

        more = [connect("BROKERS") for _ in range(3)]
        assert all(each.is_open for each in (broker, controller, *more))
        assert not any(client.is_open for client in clients)

    with_edge({**THREE_LISTENERS, "max_connections": 3}, play)


def test_the_only_listener_has_its_limit_for_all() -> None:
    def play(connect: Callable[[str], FakeTransport]) -> None:
        assert connect("PLAINTEXT").is_open
        assert not connect("PLAINTEXT").is_open

    with_edge({"max_connections": 1}, play)


def test_the_limit_of_an_address_holds_on_every_listener() -> None:
    def play(connect: Callable[[str], FakeTransport]) -> None:
        assert connect("CLIENTS").is_open
        assert not connect("BROKERS").is_open

    with_edge({**THREE_LISTENERS, "max_connections_per_ip": 1}, play)


def secured(certificate: bytes | None, **settings: object) -> tuple[list[object], bool]:
    """Whom the node hears of when a client with this certificate comes in, and whether it is still there."""

    async def run() -> tuple[list[object], bool]:
        files = {"ssl_keystore_location": "own.pem", "ssl_keystore_type": "PEM"}
        doors = {"listeners": "T://one:9092,P://one:9093", "inter_broker_listener_name": "P"}
        protocols = {"listener_security_protocol_map": "T:SSL,P:PLAINTEXT"}
        node = CountingNode(**{**doors, **protocols, **files, **settings})
        edge = Edge(asyncio.get_running_loop(), cast(Node, node), SystemClock())
        client = ClientConnection(edge, "T", is_encrypted=True)
        transport = FakeTransport(client)
        client.connection_made(cast(asyncio.BaseTransport, transport))
        assert node.principals == [], "the handshake is not done"
        client.secured(certificate)
        return node.principals, transport.is_open

    return asyncio.run(run())


ALICE = der_of(of_alice().certificate.encode())[0]


def test_a_certificate_says_who_a_client_is() -> None:
    assert secured(None) == ([Principal("User", "ANONYMOUS")], True)
    assert secured(ALICE) == ([Principal("User", "CN=alice,OU=dev team,O=Acme\\, Inc")], True)
    rules = {"ssl_principal_mapping_rules": "RULE:^CN=(.*?),.*$/$1/"}
    assert secured(ALICE, **rules) == ([Principal("User", "alice")], True)


def test_who_has_no_name_by_the_rules_does_not_come_in() -> None:
    rules = {"ssl_principal_mapping_rules": "RULE:^CN=bob$/bob/"}
    assert secured(ALICE, **rules) == ([], False)


def test_on_a_listener_with_logins_the_login_says_it() -> None:
    protocols = {
        "listener_security_protocol_map": "T:SASL_SSL,P:PLAINTEXT",
        "sasl_enabled_mechanisms": "SCRAM-SHA-512",
    }
    assert secured(ALICE, **protocols) == ([Principal("User", "ANONYMOUS")], True)


def test_clients_count_before_their_handshake() -> None:
    async def run() -> None:
        edge = Edge(asyncio.get_running_loop(), cast(Node, CountingNode(max_connections=1)), SystemClock())
        transports = []
        for _ in range(2):
            client = ClientConnection(edge, "PLAINTEXT", is_encrypted=True)
            transports.append(FakeTransport(client))
            client.connection_made(cast(asyncio.BaseTransport, transports[-1]))
        assert [transport.is_open for transport in transports] == [True, False]

    asyncio.run(run())
