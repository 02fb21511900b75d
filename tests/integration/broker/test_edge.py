"""A broker's edge: order, limits, bad input and idleness on real sockets."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.metadata import MetadataRequest
from support.processes.ottla_broker import OttlaBroker, ottla_brokers
from support.running.waiting import wait_until
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

pytestmark = pytest.mark.java

ALL_TOPICS = MetadataRequest(topics=None)


@pytest.fixture(scope="module")
def broker(chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaBroker]:
    one = OttlaBroker(
        1,
        chroots.make().connect,
        log_dir=tmp_path_factory.mktemp("edge") / "data",
        socket_request_max_bytes=1_000_000,
        connections_max_idle_ms=3_000,
        max_connections_per_ip_overrides="127.0.0.1:60",
    )
    with ottla_brokers(one):
        wait_until(lambda: is_governed(one), "the broker knows its controller")
        yield one


def is_governed(broker: OttlaBroker) -> bool:
    with WireClient(broker.address) as client:
        return bool(client.ask(ALL_TOPICS, 12).controller_id == 1)


def test_a_pipeline_of_requests_is_answered_in_order(broker: OttlaBroker) -> None:
    with WireClient(broker.address) as client:
        sent = [client.send(ALL_TOPICS, 12) for _ in range(2_000)]

        answered = []
        for _ in sent:
            frame = client.read_frame()
            assert frame is not None
            answered.append(struct.unpack_from(">i", frame)[0])

    assert answered == sent


def test_a_request_in_single_bytes_is_a_request(broker: OttlaBroker) -> None:
    with WireClient(broker.address) as client:
        request = struct.pack(">ihhih", 4 + 6 + 4, 3, 1, 99, -1) + struct.pack(">i", 0)
        for byte in request:
            client.send_bytes(bytes([byte]))

        frame = client.read_frame()

    assert frame is not None
    assert struct.unpack_from(">i", frame)[0] == 99


@pytest.mark.parametrize(
    "rubbish",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 1_000_001),
        struct.pack(">i", 0),
        struct.pack(">ihhih", 10, 99, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        struct.pack(">ihhih", 15, 3, 1, 1, -1) + struct.pack(">i", 2_000_000_000) + b"\0",
    ],
)
def test_rubbish_is_hung_up_on_and_others_are_served(broker: OttlaBroker, rubbish: bytes) -> None:
    with WireClient(broker.address) as neighbour, WireClient(broker.address) as client:
        client.send_bytes(rubbish)

        assert client.is_hung_up_on
        assert neighbour.ask(ALL_TOPICS, 12).controller_id == 1


def test_what_came_before_the_rubbish_is_answered_first(broker: OttlaBroker) -> None:
    with WireClient(broker.address) as client:
        for _ in range(3):
            client.send(ALL_TOPICS, 12)
        client.send_bytes(struct.pack(">ihhih", 10, 99, 0, 1, -1))

        assert all(client.read_frame() for _ in range(3))
        assert client.is_hung_up_on


def test_too_many_connections_of_one_address_are_refused(broker: OttlaBroker) -> None:
    clients: list[WireClient] = []
    try:
        for _ in range(70):
            clients.append(WireClient(broker.address))
        served = 0
        for client in clients:
            client.send(ApiVersionsRequest(), 0)
            served += client.read_frame() is not None
    finally:
        for client in clients:
            client.close()

    assert 40 <= served <= 60

    def is_let_in() -> bool:
        with WireClient(broker.address) as client:
            client.send(ApiVersionsRequest(), 0)
            return client.read_frame() is not None

    wait_until(is_let_in, "there is room again", 10)


def test_an_idle_connection_is_closed_and_one_in_use_is_not(broker: OttlaBroker) -> None:
    with WireClient(broker.address) as idle, WireClient(broker.address) as busy:
        idle.send(ApiVersionsRequest(), 0)
        assert idle.read_frame() is not None
        while True:
            busy.ask(ApiVersionsRequest(), 0)
            idle._socket.settimeout(0.3)
            try:
                hung_up = idle.is_hung_up_on
            except TimeoutError:
                continue
            break

        assert hung_up
        assert busy.ask(ALL_TOPICS, 12).controller_id == 1


def test_a_client_that_reads_nothing_is_read_from_no_more(broker: OttlaBroker) -> None:
    """Its requests stay in its own buffers: the broker's memory is not its mailbox."""
    with socket.create_connection(("127.0.0.1", broker.port)) as deaf:
        deaf.settimeout(2)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = struct.pack(">ihhih", 10, 18, 0, 1, -1) * 2_000
        assert _send_until_blocked(deaf, request) < 100_000_000

        with WireClient(broker.address) as other:
            assert other.ask(ALL_TOPICS, 12).controller_id == 1
        memory_kb = int(Path(f"/proc/{broker.pid}/status").read_text().split("VmRSS:")[1].split()[0])
    assert memory_kb < 150_000


def _send_until_blocked(connection: socket.socket, data: bytes) -> int:
    sent = 0
    while sent < 100_000_000:
        try:
            sent += connection.send(data)
        except TimeoutError:
            break
    return sent
