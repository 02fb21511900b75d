"""A producer for ordinary programs: I/O happens while you send, flush or wait."""

import time
from typing import TYPE_CHECKING

from ottla.client.config import ProducerConfig
from ottla.client.errors import BufferFull, TimedOut
from ottla.client.producing.batches import Delivery
from ottla.client.producing.producer import ProducerCore
from ottla.records.record import Record, RecordHeaders

if TYPE_CHECKING:
    from ottla.client.blocking import Client


class Producer:
    """Sends records. I/O happens while you send, flush or wait."""

    def __init__(self, client: "Client", config: ProducerConfig) -> None:
        self._client = client
        self._core = ProducerCore(client.engine, config)
        self._buffered_at_last_turn = 0

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: RecordHeaders = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record; what becomes of it stands in the delivery, after ``flush`` or ``wait``."""
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        record = Record(key, value, headers, timestamp_ms)
        self._client.engine.catch_up(self._client.now_ms())
        try:
            delivery = self._core.send(topic, record, partition)
        except BufferFull:
            delivery = self._send_when_there_is_room(topic, record, partition)
        if self._core.buffered_bytes - self._buffered_at_last_turn >= self._core.config.batch_size:
            self._client.turn(0)
            self._buffered_at_last_turn = self._core.buffered_bytes
        return delivery

    def wait(self, delivery: Delivery) -> Delivery:
        """Wait until a record is delivered; raise if it was not."""
        self._client.run_until(lambda: delivery.is_done)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    def flush(self) -> None:
        """Wait until every record sent so far is delivered or has failed."""
        self._client.run(lambda _: self._core.flush())
        self._buffered_at_last_turn = self._core.buffered_bytes

    def close(self) -> None:
        """Flush."""
        self.flush()
        self._core.close()

    def _send_when_there_is_room(self, topic: str, record: Record, partition: int | None) -> Delivery:
        core = self._core
        limit = core.config.buffer_memory // 2
        if not self._client.run_until(lambda: core.buffered_bytes <= limit, core.config.max_block_ms):
            raise TimedOut("room in the buffer", core.config.max_block_ms, None)
        self._buffered_at_last_turn = core.buffered_bytes
        return core.send(topic, record, partition)
