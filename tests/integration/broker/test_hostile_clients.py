"""Clients that mean harm: rubbish by the thousand, connections that never finish a request."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.versions import API_VERSIONS
from support.ottla_broker import OttlaBroker, ottla_brokers
from support.wire_client import WireClient
from support.zookeeper_chroots import Chroots

pytestmark = pytest.mark.java

SLOW_CONNECTIONS = 200
MEMORY_GROWTH_KB_MAX = 60_000


@pytest.fixture(scope="module")
def broker(_chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaBroker]:
    one = OttlaBroker(1, _chroots.make().connect, log_dir=tmp_path_factory.mktemp("hostile") / "data")
    with ottla_brokers(one):
        yield one


def memory_kb(broker: OttlaBroker) -> int:
    return int(Path(f"/proc/{broker.pid}/status").read_text().split("VmRSS:")[1].split()[0])


def a_hostile_frame(chance: random.Random) -> bytes:
    """A header that may be sound with a body that is not: every API, every version, every size."""
    api_key = chance.choice(list(API_VERSIONS)) if chance.random() < 0.95 else chance.randrange(-100, 200)
    version = chance.randrange(-1, 20)
    body = chance.randbytes(chance.choice((0, 1, 2, 4, 8, 15, 40, 300)))
    if chance.random() < 0.3:
        body = chance.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\0\0\0\1", b"\xff\xff")) + body
    frame = struct.pack(">hhih", api_key, version, 1, -1) + chance.choice((b"", b"\0")) + body
    size = len(frame) if chance.random() < 0.9 else chance.choice((-1, 0, 2**31 - 1, len(frame) // 2))
    return struct.pack(">i", size) + frame


def attack(address: tuple[str, int], frames: int, seed: int) -> None:
    """Send so many hostile frames, on as many connections as the broker cuts off."""
    chance = random.Random(seed)
    sent = 0
    while sent < frames:
        with suppress(OSError), closing(socket.create_connection(address, timeout=5)) as connection:
            connection.settimeout(0.05)
            for _ in range(10):
                connection.sendall(a_hostile_frame(chance))
                sent += 1
                with suppress(TimeoutError):
                    if not connection.recv(65_536):
                        break


def slow_connections(address: tuple[str, int]) -> list[socket.socket]:
    """Each has begun a request of a megabyte and sends no more."""
    begun = []
    for _ in range(SLOW_CONNECTIONS):
        connection = socket.create_connection(address, timeout=5)
        connection.sendall(struct.pack(">ihh", 1_000_000, 0, 9))
        begun.append(connection)
    return begun


def produce_p99_s(broker: OttlaBroker, records: int) -> float:
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "linger.ms": 0, "log_level": 0})
    times = []
    for number in range(records + 50):
        begun = time.perf_counter()
        producer.produce("honest", b"x" * 100)
        assert producer.flush(30) == 0
        if number >= 50:
            times.append(time.perf_counter() - begun)
    return sorted(times)[records * 99 // 100]


def test_rubbish_by_the_thousand_harms_nobody_else(broker: OttlaBroker, long_form: bool) -> None:
    frames, records = (100_000, 2_000) if long_form else (3_000, 200)
    address = ("127.0.0.1", broker.port)
    unloaded_s = produce_p99_s(broker, records)
    before_kb = memory_kb(broker)
    attackers = [
        threading.Thread(target=attack, args=(address, frames // 4, seed), daemon=True) for seed in range(4)
    ]
    slow = slow_connections(address)
    try:
        for attacker in attackers:
            attacker.start()
        loaded_s = produce_p99_s(broker, records)
        for attacker in attackers:
            attacker.join()
        with WireClient(broker.address) as client:
            assert client.ask(MetadataRequest(topics=None), 12).controller_id == 1
        growth_kb = memory_kb(broker) - before_kb
    finally:
        for connection in slow:
            connection.close()

    assert broker.is_running
    assert "internal error" not in broker.log_text()
    assert growth_kb < MEMORY_GROWTH_KB_MAX
    if long_form:
        assert loaded_s < 3 * unloaded_s + 0.002, "neighbours wait at most three times as long"
