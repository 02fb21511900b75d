"""What TLS costs: one Ottla broker beside one warm Apache broker, in turns, each with and without TLS.

Connections a second are full handshakes, one after the other, each with a request and its answer behind it.
"""

import argparse
import json
import socket
import ssl
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _sides import KINDS, Side, median, settle
from confluent_kafka import Consumer, Producer, TopicPartition
from history import record

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.processes.broker_process import HOST
from support.processes.ports import free_port
from support.running.bytecode import keep_bytecode
from support.security.tls import Files, a_client_context, files_in

VERSIONS_ASKED = bytes.fromhex("0000000a" + "0012" + "0000" + "00000001" + "ffff")
"""ApiVersions, the smallest request there is."""


def a_side(kind: str, zk_connect: str, files: Files) -> tuple[Side, int]:
    """A broker, and its port with TLS."""
    plain, tls = free_port(), free_port()
    settings: dict[str, object] = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{tls}",
        **files.settings,
    }
    return Side(kind, [KINDS[kind](1, zk_connect, plain, **settings)]), tls


def produce(config: dict[str, Any], topic: str, megabytes: int, size: int) -> float:
    """MB/s until everything is acknowledged."""
    failures: list[object] = []
    producer = Producer({**config, "linger.ms": 5, "batch.size": 1_000_000, "acks": "1"})
    value = bytes(size)
    count = megabytes * 1_000_000 // size
    started = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(
                    topic, value, on_delivery=lambda error, _: failures.append(error) if error else None
                )
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(300) == 0, "not all was written"
    assert not failures, failures[:3]
    return count * size / 1e6 / (time.perf_counter() - started)


def consume(config: dict[str, Any], topic: str, megabytes: int, size: int) -> float:
    """MB/s from the beginning."""
    consumer = Consumer({**config, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    left = megabytes * 1_000_000 // size
    total = left
    started = time.perf_counter()
    while left:
        messages = consumer.consume(min(left, 10_000), 60)
        assert messages, "nothing more comes"
        left -= len(messages)
    elapsed_s = time.perf_counter() - started
    consumer.close()
    return total * size / 1e6 / elapsed_s


def latency(config: dict[str, Any], topic: str, records: int) -> float:
    """Microseconds of one record at a time, in the middle."""
    producer = Producer({**config, "linger.ms": 0, "acks": "1"})
    times = []
    for _ in range(records):
        started = time.perf_counter()
        producer.produce(topic, b"x" * 100)
        producer.flush()
        times.append((time.perf_counter() - started) * 1e6)
    return median(times)


def connects(port: int, count: int, context: ssl.SSLContext | None) -> float:
    """Connections a second, each asked one thing."""
    started = time.perf_counter()
    for _ in range(count):
        connection = socket.create_connection((HOST, port), timeout=60)
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname=HOST)
        with connection:
            connection.sendall(VERSIONS_ASKED)
            assert connection.recv(4), "the broker hung up"
    return count / (time.perf_counter() - started)


def one_round(
    side: Side, tls_port: int, files: Files, number: int, asked: argparse.Namespace
) -> dict[str, float]:
    """All measures of one side."""
    numbers: dict[str, float] = {}
    plain = {"bootstrap.servers": side.bootstrap, "log_level": 0}
    encrypted = {
        "bootstrap.servers": f"{HOST}:{tls_port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.ca),
        "log_level": 0,
    }
    doors = (
        ("PLAINTEXT", plain, side.brokers[0].port, None),
        ("TLS", encrypted, tls_port, a_client_context(files)),
    )
    for name, config, port, context in doors:
        topic = f"{name}-{number}"
        side.create(topic, 1, 1)
        before = side.cpu_seconds()
        numbers[f"produce 1 KiB over {name}, MB/s"] = produce(config, topic, asked.megabytes, 1024)
        numbers[f"broker CPU of that, ms/MB {name}"] = (side.cpu_seconds() - before) * 1000 / asked.megabytes
        numbers[f"consume 1 KiB over {name}, MB/s"] = consume(config, topic, asked.megabytes, 1024)
        numbers[f"produce 16 KiB over {name}, MB/s"] = produce(config, topic, asked.megabytes, 16_384)
        numbers[f"latency over {name} p50, us"] = latency(config, topic, asked.records)
        numbers[f"connects a second over {name}"] = connects(port, asked.connects, context)
        side.delete(topic)
        settle()
    return numbers


def main() -> int:
    """Measure, print a table, keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--connects", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-history", action="store_true")
    asked = parser.parse_args()
    keep_bytecode()
    seen: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, EmbeddedZooKeeper(Path(folder) / "zookeeper") as zookeeper:
        files = files_in(Path(folder))
        sides = [a_side(kind, f"{zookeeper.connect}/{kind}", files) for kind in ("ottla", "apache")]
        with ExitStack() as running:
            for side, _ in sides:
                running.callback(side.stop)
                side.start()
            for number in range(asked.rounds):
                for side, tls_port in sides if number % 2 == 0 else sides[::-1]:
                    for measure, value in one_round(side, tls_port, files, number, asked).items():
                        seen.setdefault(measure, {}).setdefault(side.name, []).append(value)
    results = {measure: {name: median(of) for name, of in by.items()} for measure, by in seen.items()}
    print(f"{'':40} {'ottla':>10} {'apache':>10} {'ratio':>7}")
    for measure, by in results.items():
        print(f"{measure:40} {by['ottla']:10.1f} {by['apache']:10.1f} {by['ottla'] / by['apache']:7.2f}")
    if asked.no_history:
        print(json.dumps(results))
    else:
        record("security", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
