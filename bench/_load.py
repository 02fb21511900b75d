"""A load generator that is no bottleneck: requests encoded beforehand, several in flight, plain sockets.

A process of its own: ``python bench/_load.py TOPIC BATCHES PARTITION=HOST:PORT...`` prints the seconds,
its own CPU seconds, and how many batches were sent.
"""

import selectors
import socket
import struct
import sys
import time
from collections import deque

from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.wire.headers import decode_response, frame_request

VERSION = 9
RECORDS = 16
RECORD_BYTES = 1000
"""Sixteen records of this size and their frame are a batch of 16 KiB."""
IN_FLIGHT = 16
"""Requests without an answer on one connection."""
RECEIVE_BYTES = 256 * 1024


def produce_frame(topic: str, partition: int) -> bytes:
    """One request with one batch, for all replicas."""
    records = [Record(None, bytes(RECORD_BYTES), timestamp=1_700_000_000_000) for _ in range(RECORDS)]
    data = PartitionProduceData(index=partition, records=build_batch(records))
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    return b"".join(frame_request(request, VERSION, partition, "load"))


class Lane:
    """One connection to a leader, with the requests that are still to be sent to it."""

    def __init__(self, address: str, frames: list[bytes], batches: int) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._to_send = deque(frames[number % len(frames)] for number in range(batches))
        self._in_flight = 0
        self._received = bytearray()

    def fill(self) -> None:
        """Send until enough is in flight."""
        while self._to_send and self._in_flight < IN_FLIGHT:
            self.socket.sendall(self._to_send.popleft())
            self._in_flight += 1

    def drain(self) -> None:
        """Take the answers that have come; each must say that the batch is committed."""
        self._received += self.socket.recv(RECEIVE_BYTES)
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            _, answer = decode_response(ProduceResponse, VERSION, bytes(self._received[4 : 4 + size]))
            error = answer.responses[0].partition_responses[0].error_code
            if error:
                raise SystemExit(f"a batch was refused: error {error}")
            del self._received[: 4 + size]
            self._in_flight -= 1

    @property
    def is_done(self) -> bool:
        return not self._to_send and not self._in_flight


def main(topic: str, batches: int, leaders: dict[int, str]) -> None:
    by_address: dict[str, list[bytes]] = {}
    for partition, address in leaders.items():
        by_address.setdefault(address, []).append(produce_frame(topic, partition))
    share = batches // len(by_address)
    lanes = [Lane(address, frames, share) for address, frames in by_address.items()]
    selector = selectors.DefaultSelector()
    started, cpu = time.perf_counter(), time.process_time()
    for lane in lanes:
        selector.register(lane.socket, selectors.EVENT_READ, lane)
        lane.fill()
    while not all(lane.is_done for lane in lanes):
        for key, _ in selector.select():
            key.data.drain()
            key.data.fill()
    print(time.perf_counter() - started, time.process_time() - cpu, share * len(lanes))


if __name__ == "__main__":
    main(
        sys.argv[1],
        int(sys.argv[2]),
        {int(number): address for number, address in (each.split("=") for each in sys.argv[3:])},
    )
