"""Produce, consume and latency through librdkafka: three Ottla brokers beside three warm Apache brokers."""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from _floor import answer_table
from _sides import Side, compare_with, median, settle, touch_memory, two_sides
from bars import BROKER
from confluent_kafka import Consumer, Producer, TopicPartition
from history import record

from support.processes.ports import free_port
from support.running.waiting import wait_until

PARTITIONS = 6
BATCH_BYTES = 16_000


def produce(side: Side, topic: str, megabytes: int, size: int, acks: str, **settings: object) -> float:
    """MB/s until everything is acknowledged."""
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": side.bootstrap,
            "acks": acks,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 512_000,
            "log_level": 0,
            **settings,
        }
    )
    value = bytes(range(256)) * (size // 256 + 1)
    value = value[:size]
    count = megabytes * 1_000_000 // size

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    started = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    elapsed_s = time.perf_counter() - started
    assert not failures, failures[:3]
    return count * size / 1e6 / elapsed_s


def consume(side: Side, topic: str, megabytes: int, size: int) -> float:
    """MB/s from the beginning of every partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 500_000,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    wanted = megabytes * 1_000_000 // size
    read = 0
    started = time.perf_counter()
    while read < wanted:
        read += len(consumer.consume(10_000, 1.0))
    elapsed_s = time.perf_counter() - started
    consumer.close()
    return read * size / 1e6 / elapsed_s


def load(side: Side, topic: str, megabytes: int) -> float:
    """MB/s in batches of 16 KiB to three replicas, from a generator that is no bottleneck."""
    leaders = [f"{partition}={address}" for partition, address in side.leaders(topic).items()]
    batches = megabytes * 1_000_000 // BATCH_BYTES
    command = [sys.executable, str(Path(__file__).parent / "_load.py"), topic, str(batches), *leaders]
    seen = json.loads(subprocess.check_output(command, text=True))
    return float(seen["requests"] * BATCH_BYTES / 1e6 / seen["seconds"])


def latency(bootstrap: str, topic: str, count: int, acks: str) -> tuple[float, float]:
    """Microseconds from a single record to its acknowledgement: p50 and p99."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 0, "log_level": 0})
    times: list[float] = []
    for number in range(count + 100):
        done: list[bool] = []
        started = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0, on_delivery=lambda error, _: done.append(True))  # noqa: B023
        while not done:
            producer.poll(0.1)
        if number >= 100:
            times.append((time.perf_counter() - started) * 1e6)
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.99)]


@contextmanager
def floor(topic: str, *, is_compiled: bool = False) -> Iterator[str]:
    """A responder that does nothing; its address."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as directory:
        command = [sys.executable, str(Path(__file__).parent / "_floor.py"), str(port), topic]
        if is_compiled:
            program, table = Path(directory, "floor"), Path(directory, "table")
            subprocess.check_call(["cc", "-O2", "-o", program, Path(__file__).parent / "_floor.c"])
            table.write_bytes(answer_table(port, topic))
            command = [str(program), str(port), str(table)]
        with _responder(command, port) as address:
            yield address


@contextmanager
def _responder(command: list[str], port: int) -> Iterator[str]:
    with subprocess.Popen(command) as process:
        wait_until(lambda: _is_listening(port), "the responder listens", 30)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def alternate(
    sides: tuple[Side, Side], rounds: int, run: Callable[[Side, int], dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Each side in turn, so that both see the same machine; medians by measure and side."""
    seen: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else sides[::-1]:
            for measure, value in run(side, number).items():
                seen.setdefault(measure, {}).setdefault(side.name, []).append(value)
    show_spread(seen, sides)
    return {measure: {name: median(v) for name, v in by.items()} for measure, by in seen.items()}


def show_spread(seen: dict[str, dict[str, list[float]]], sides: tuple[Side, Side]) -> None:
    """The ratio of every round, lowest first: what a median hides."""
    ours, peers = sides[0].name, sides[1].name
    for measure, by in seen.items():
        ratios = sorted(mine / theirs for mine, theirs in zip(by[ours], by[peers], strict=True))
        shown = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{measure:36} median of ratios {median(ratios):.3f}, each round {shown}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-megabytes", type=int, default=400)
    parser.add_argument("--records", type=int, default=2000, help="single records for the latencies")
    parser.add_argument("--no-history", action="store_true", help="only a try: keep no figures")
    parser.add_argument("--against", type=Path, help="another clone of Ottla as the peer, instead of Apache")
    arguments = parser.parse_args()
    touch_memory()
    peer = compare_with(arguments.against) if arguments.against else "apache"
    with two_sides(peer) as sides:
        results: dict[str, dict[str, float]] = {
            "idle memory, MB": {side.name: side.memory_mb() for side in sides}
        }
        for side in sides:
            for topic, replicas in (("warm-1", 1), ("warm-3", 3)):
                side.create(topic, PARTITIONS, replicas)
                produce(side, topic, arguments.warm_megabytes, 1024, "all")
                consume(side, topic, arguments.warm_megabytes, 1024)
                latency(side.bootstrap, topic, arguments.records, "all")
            load(side, "warm-3", arguments.warm_megabytes // 4)

        def run(side: Side, number: int) -> dict[str, float]:
            megabytes = arguments.megabytes
            numbers: dict[str, float] = {}
            one, three = f"one-{number}", f"three-{number}"
            side.create(one, PARTITIONS, 1)
            side.create(three, PARTITIONS, 3)
            before = side.cpu_seconds()
            numbers["produce 1 KiB RF 1 acks=1, MB/s"] = produce(side, one, megabytes, 1024, "1")
            numbers["broker CPU RF 1, ms/MB"] = (side.cpu_seconds() - before) * 1000 / megabytes
            before = side.cpu_seconds()
            numbers["produce 1 KiB RF 3 acks=all, MB/s"] = produce(side, three, megabytes, 1024, "all")
            numbers["broker CPU RF 3, ms/MB"] = (side.cpu_seconds() - before) * 1000 / megabytes
            numbers["produce 16 KiB batches RF 3, MB/s"] = load(side, three, megabytes)
            numbers["consume 1 KiB, MB/s"] = consume(side, one, megabytes, 1024)
            numbers["produce 100 B RF 1, MB/s"] = produce(side, one, megabytes, 100, "1")
            lz4 = {"compression.type": "lz4"}
            numbers["produce lz4 RF 1, MB/s"] = produce(side, one, megabytes, 1024, "1", **lz4)
            for acks, topic in (("1", one), ("all", three)):
                p50, p99 = latency(side.bootstrap, topic, arguments.records, acks)
                numbers[f"latency acks={acks} p50, us"] = p50
                numbers[f"latency acks={acks} p99, us"] = p99
            with floor(one) as address:
                numbers["latency of the client alone p50, us"], _ = latency(
                    address, one, arguments.records, "1"
                )
            if shutil.which("cc"):
                with floor(one, is_compiled=True) as address:
                    numbers["the same, responder in C, p50, us"], _ = latency(
                        address, one, arguments.records, "1"
                    )
            side.delete(one)
            side.delete(three)
            settle()
            return numbers

        results |= alternate(sides, arguments.rounds, run)
        results["memory after load, MB"] = {side.name: side.memory_mb() for side in sides}
    missed = report(results, peer)
    if not arguments.no_history and peer == "apache":
        record("broker", results)
    return 1 if missed else 0


def report(results: dict[str, dict[str, float]], peer: str) -> list[str]:
    """A table with ratios; the measures that miss their bar, which is for Apache as the peer."""
    missed = []
    print(f"{'':36} {'ottla':>10} {peer:>10} {'ratio':>7}  bar")
    for measure, by in results.items():
        ours, theirs = by["ottla"], by[peer]
        bar = BROKER.get(measure) if peer == "apache" else None
        verdict = f"{bar.sign} {bar.number}" if bar else ""
        if bar and not bar.is_met(ours, theirs):
            missed.append(measure)
            verdict += "  MISSED"
        print(f"{measure:36} {ours:10.1f} {theirs:10.1f} {ours / theirs:7.2f}  {verdict}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
