"""Clients that mean harm: rubbish by the thousand, connections that never finish a request."""

import logging
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.wire.apis.metadata import MetadataRequest
from support.processes.ottla_broker import OttlaBroker, ottla_brokers
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

pytestmark = pytest.mark.java

log = logging.getLogger(__name__)

TESTS = Path(__file__).parents[2]
ATTACKERS = 2
SLOW_CONNECTIONS = 200
WARM_UP = 50
MEMORY_GROWTH_KB_MAX = 60_000


@pytest.fixture(scope="module")
def broker(chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaBroker]:
    one = OttlaBroker(1, chroots.make().connect, log_dir=tmp_path_factory.mktemp("hostile") / "data")
    with ottla_brokers(one):
        yield one


def memory_kb(broker: OttlaBroker) -> int:
    return int(Path(f"/proc/{broker.pid}/status").read_text().split("VmRSS:")[1].split()[0])


def attackers(broker: OttlaBroker, frames: int) -> list[subprocess.Popen[bytes]]:
    """Processes that send so many hostile frames."""
    command = [sys.executable, "-m", "support.wire.hostile", str(broker.port), str(frames // ATTACKERS)]
    return [subprocess.Popen([*command, str(seed)], cwd=TESTS) for seed in range(ATTACKERS)]


def slow_connections(address: tuple[str, int]) -> list[socket.socket]:
    """Each has begun a request of a megabyte and sends no more."""
    begun = []
    for _ in range(SLOW_CONNECTIONS):
        connection = socket.create_connection(address, timeout=5)
        connection.sendall(struct.pack(">ihh", 1_000_000, 0, 9))
        begun.append(connection)
    return begun


def produce_p99_s(
    broker: OttlaBroker, records: int, hostile: Sequence[subprocess.Popen[bytes]] = ()
) -> float:
    """One record after another, so many at least, and as long as there are attackers."""
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "linger.ms": 0, "log_level": 0})
    times: list[float] = []
    while len(times) < records + WARM_UP or any(each.poll() is None for each in hostile):
        begun = time.perf_counter()
        producer.produce("honest", b"x" * 100)
        assert producer.flush(30) == 0
        times.append(time.perf_counter() - begun)
    measured = sorted(times[WARM_UP:])
    return measured[len(measured) * 99 // 100]


def test_rubbish_by_the_thousand_harms_nobody_else(broker: OttlaBroker, long_form: bool) -> None:
    frames, records = (100_000, 2_000) if long_form else (3_000, 200)
    address = ("127.0.0.1", broker.port)
    unloaded_s = produce_p99_s(broker, records)
    before_kb = memory_kb(broker)
    slow = slow_connections(address)
    hostile = attackers(broker, frames)
    try:
        loaded_s = produce_p99_s(broker, records, hostile)
        assert [each.wait() for each in hostile] == [0] * ATTACKERS
        with WireClient(broker.address) as client:
            assert client.ask(MetadataRequest(topics=None), 12).controller_id == 1
        growth_kb = memory_kb(broker) - before_kb
    finally:
        for each in hostile:
            each.kill()
            each.wait()
        for connection in slow:
            connection.close()
    log.info(
        "frames=%d slow=%d p99 unloaded=%.2f ms loaded=%.2f ms memory +%d KB",
        frames,
        SLOW_CONNECTIONS,
        unloaded_s * 1000,
        loaded_s * 1000,
        growth_kb,
    )

    assert broker.is_running
    assert "internal error" not in broker.log_text()
    assert growth_kb < MEMORY_GROWTH_KB_MAX
    if long_form:
        assert loaded_s < 3 * unloaded_s + 0.002, "neighbours wait at most three times as long"
