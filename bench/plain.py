"""Processor time of one request inside the broker: real node, edge and disk, and no sockets.

What the loop and the kernel add is left out, and so is nearly all noise: the figures may be compared on a
busy machine. ``long way`` is the same broker with its short way for plain requests switched off.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from history import record

from ottla.broker.node import Node
from ottla.server.edge import Edge
from ottla.server.listener import ClientConnection
from ottla.server.timers import SystemClock
from ottla.storage.disk.port import OsDisk
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.headers import frame_request
from support.bench.led_broker import ME, TOPIC, LedBroker, a_batch
from support.bench.node_bench import a_config

IN_FLIGHT = 5
BATCHES = 500
"""How many are there to be fetched."""


class RealBroker(LedBroker):
    """On the real disk and by the real clock, leading one partition alone."""

    def __init__(self, directory: str) -> None:
        self._config = a_config(**{"log.dirs": directory})
        super().__init__(self._config, brokers=(ME,))

    def start(self) -> "RealBroker":
        controller = self.node.controller
        self.clock = cast(Any, SystemClock())
        self.node = Node(self._config, self.clock, OsDisk(), Random(2))
        self.node.controller = controller
        super().start()
        return self


class NoTransport:
    """Takes what is written."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **named: None


class Client:
    """A connection without a socket."""

    def __init__(self, broker: RealBroker) -> None:
        loop = asyncio.new_event_loop()
        self._connection = ClientConnection(Edge(loop, broker.node, cast(Any, broker.clock)), "PLAINTEXT")
        self._connection.connection_made(cast(Any, NoTransport()))

    def send(self, data: bytes) -> None:
        while data:
            room = self._connection.get_buffer(len(data))
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self._connection.buffer_updated(count)


@contextmanager
def a_client(*, is_long: bool = False) -> Iterator[Client]:
    with tempfile.TemporaryDirectory(prefix="ottla-plain-") as directory:
        broker = RealBroker(directory)
        broker.lead()
        broker.node.serves_plainly = not is_long
        yield Client(broker)


def produce_frame() -> bytes:
    data = PartitionProduceData(0, bytes(a_batch("x" * 1000)))
    request = ProduceRequest(None, 1, 30_000, [TopicProduceData(TOPIC, [data])])
    return b"".join(frame_request(request, 9, 7, "bench"))


def fetch_frame(offset: int) -> bytes:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=[FetchTopic(TOPIC, partitions=[asked])]
    )
    return b"".join(frame_request(request, 11, 7, "bench"))


def cost_us(frames: list[bytes], requests: int, is_long: bool = False) -> float:
    """Of one request, in the best of five runs; each element of ``frames`` comes in one turn."""
    with a_client(is_long=is_long) as client:
        for _ in range(BATCHES):
            client.send(produce_frame())
        gc.collect()
        gc.freeze()
        best = float("inf")
        for _ in range(5):
            began = time.process_time()
            for number in range(requests):
                client.send(frames[number % len(frames)])
            best = min(best, time.process_time() - began)
        return best / requests * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--no-history", action="store_true", help="only a try: keep no figures")
    arguments = parser.parse_args()
    pipelined = [produce_frame() * IN_FLIGHT]
    turns = arguments.requests // IN_FLIGHT
    numbers = {
        "produce 1 KiB, five at once, us": cost_us(pipelined, turns) / IN_FLIGHT,
        "the same, long way, us": cost_us(pipelined, turns, is_long=True) / IN_FLIGHT,
        "produce 1 KiB alone, us": cost_us([produce_frame()], arguments.requests),
        "fetch 1 KiB, us": cost_us([fetch_frame(at) for at in range(BATCHES)], arguments.requests),
    }
    for row, value in numbers.items():
        print(f"{row:<36}{value:>8.1f}")
    if not arguments.no_history:
        record("plain", {row: round(value, 2) for row, value in numbers.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
