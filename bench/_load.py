"""A load generator that is no bottleneck: requests encoded beforehand, several in flight, plain sockets.

A process of its own: ``python bench/_load.py TOPIC COUNT PARTITION=HOST:PORT...`` prints what it saw as JSON:
how many requests, the seconds of all, and the median microseconds of one. As it is, it produces batches of
16 KiB with acks=all; the options make them smaller, or read single batches back.
"""

import argparse
import json
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable

from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.wire.headers import decode_response, frame_request

PRODUCE_VERSION = 9
FETCH_VERSION = 11
RECORD_BYTES = 1000
"""Sixteen records of this size and their frame are a batch of 16 KiB."""
RECEIVE_BYTES = 256 * 1024


def produce_frame(topic: str, partition: int, records: int, acks: int) -> bytes:
    """One request with one batch."""
    now_ms = int(time.time() * 1000)  # old records would be deleted while the benchmark runs
    batch = build_batch([Record(None, bytes(RECORD_BYTES), timestamp=now_ms) for _ in range(records)])
    data = PartitionProduceData(index=partition, records=batch)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)
    return b"".join(frame_request(request, PRODUCE_VERSION, partition, "load"))


def fetch_frame(topic: str, partition: int, offset: int) -> bytes:
    """Asks for the one batch at an offset."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=RECORD_BYTES)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[asked])], session_epoch=-1
    )
    return b"".join(frame_request(request, FETCH_VERSION, partition, "load"))


def check_produced(frame: bytes) -> None:
    """The batch was taken."""
    _, answer = decode_response(ProduceResponse, PRODUCE_VERSION, frame)
    error = answer.responses[0].partition_responses[0].error_code
    if error:
        raise SystemExit(f"a batch was refused: error {error}")


def check_fetched(frame: bytes) -> None:
    """The batch came."""
    _, answer = decode_response(FetchResponse, FETCH_VERSION, frame)
    row = answer.responses[0].partitions[0]
    if row.error_code or not row.records:
        raise SystemExit(f"nothing was fetched: error {row.error_code}")


class Lane:
    """One connection to a leader, with the requests that are still to be sent to it."""

    def __init__(
        self, address: str, frames: Iterable[bytes], in_flight: int, check: Callable[[bytes], None]
    ) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times: list[float] = []
        self._to_send = deque(frames)
        self._in_flight = in_flight
        self._sent: deque[float] = deque()
        self._received = bytearray()
        self._check = check

    def fill(self) -> None:
        """Send until enough is in flight."""
        while self._to_send and len(self._sent) < self._in_flight:
            self._sent.append(time.perf_counter())
            self.socket.sendall(self._to_send.popleft())

    def drain(self) -> None:
        """Take the answers that have come; each must be a good one."""
        self._received += self.socket.recv(RECEIVE_BYTES)
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            self.times.append(time.perf_counter() - self._sent.popleft())
            self._check(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]

    @property
    def is_done(self) -> bool:
        return not self._to_send and not self._sent


def lanes(arguments: argparse.Namespace) -> list[Lane]:
    """A connection to each leader, with its share of the requests."""
    topic = arguments.topic
    by_address: dict[str, list[int]] = {}
    for leader in arguments.leaders:
        partition, address = leader.split("=")
        by_address.setdefault(address, []).append(int(partition))
    share = arguments.count // len(by_address)
    made = []
    for address, partitions in by_address.items():
        frames: Iterable[bytes]
        if arguments.fetch:
            frames = (fetch_frame(topic, partitions[0], offset) for offset in range(share))
            made.append(Lane(address, frames, arguments.in_flight, check_fetched))
        else:
            own = [produce_frame(topic, each, arguments.records, arguments.acks) for each in partitions]
            frames = (own[number % len(own)] for number in range(share))
            made.append(Lane(address, frames, arguments.in_flight, check_produced))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic")
    parser.add_argument("count", type=int)
    parser.add_argument("leaders", nargs="+", metavar="PARTITION=HOST:PORT")
    parser.add_argument("--records", type=int, default=16, help="in a batch, of a thousand bytes each")
    parser.add_argument("--acks", type=int, default=-1)
    parser.add_argument("--in-flight", type=int, default=16, help="requests without an answer a connection")
    parser.add_argument("--fetch", action="store_true", help="read batches of one record, one a request")
    made = lanes(parser.parse_args())
    selector = selectors.DefaultSelector()
    started = time.perf_counter()
    for lane in made:
        selector.register(lane.socket, selectors.EVENT_READ, lane)
        lane.fill()
    while not all(lane.is_done for lane in made):
        for key, _ in selector.select():
            key.data.drain()
            key.data.fill()
    seconds = time.perf_counter() - started
    times = sorted(each for lane in made for each in lane.times)
    print(json.dumps({"requests": len(times), "seconds": seconds, "p50_us": times[len(times) // 2] * 1e6}))


if __name__ == "__main__":
    main()
