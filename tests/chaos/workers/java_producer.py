"""Java's own producer, in a JVM beside the worker, behind those calls of librdkafka's that the load makes."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

from chaos.workers.written import Written
from support.processes.java_harness import JavaHarness

ROW = struct.Struct(">ii")
DONE = struct.Struct(">qqi")
PAUSE_S = 0.005
# An idempotent producer with acks=all that finds out soon where its leader has gone.
PROPERTIES = """
acks=all
enable.idempotence=true
linger.ms=10
delivery.timeout.ms=600000
request.timeout.ms=10000
max.block.ms=60000
buffer.memory=67108864
metadata.max.age.ms=5000
retry.backoff.ms=50
retry.backoff.max.ms=500
reconnect.backoff.ms=50
reconnect.backoff.max.ms=500
socket.connection.setup.timeout.ms=2000
"""

OnDelivery = Callable[[Any, Any], None]


class JavaProducer:
    """Records wait here until the next poll, which hands them over and tells of those that are done."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._java = JavaHarness("ProducingOracle")
        self._java.call("open", f"{PROPERTIES}bootstrap.servers={bootstrap}\ntopic={topic}\n".encode())
        self._rows: list[bytes] = []
        self._sent = 0
        self._waiting: dict[int, tuple[bytes, OnDelivery]] = {}

    def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: OnDelivery) -> None:
        """Of the topic that the producer was made for."""
        self._rows += (ROW.pack(partition, len(value)), value)
        self._waiting[self._sent] = (value, on_delivery)
        self._sent += 1

    def poll(self, seconds: float) -> None:
        """At most one pause: there is nothing to wait for but time."""
        if not self._turn():
            time.sleep(seconds)

    def flush(self, seconds: float) -> None:
        """Whatever is not delivered by then stays without an answer."""
        deadline = time.monotonic() + seconds
        while self._waiting and time.monotonic() < deadline:
            self.poll(PAUSE_S)

    def _turn(self) -> bool:
        answer = self._java.call("send", b"".join(self._rows))
        self._rows.clear()
        at = 0
        while at < len(answer):
            number, offset, length = DONE.unpack_from(answer, at)
            at += DONE.size + length
            value, on_delivery = self._waiting.pop(number)
            on_delivery(answer[at - length : at].decode() or None, Written(value, offset))
        return bool(answer)
