"""A consumer for ordinary programs that reads what it is assigned: I/O happens while you poll."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.client.config import ConsumerConfig
from ottla.client.fetching.fetcher import FetchCore
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client


class Consumer:
    """Reads the partitions that it is assigned."""

    def __init__(self, client: "Client", config: ConsumerConfig) -> None:
        self._client = client
        self._core = FetchCore(client.engine, config)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read only these partitions, each from an offset, ``EARLIEST`` or ``LATEST``."""
        self._core.assign(positions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from an offset, ``EARLIEST`` or ``LATEST``."""
        self._core.seek(partition, offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._core.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._core.pause(partitions, is_paused=False)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; ``None`` while it is not known."""
        return self._core.position(partition)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark of the last response; ``None`` before the first."""
        return self._core.high_watermark(partition)

    def poll(self, timeout_ms: int, max_records: int | None = None) -> dict[TopicPartition, list[Record]]:
        """The next records, waiting for them at most ``timeout_ms``."""
        count = self._core.config.max_poll_records if max_records is None else max_records
        deadline_ms = self._client.now_ms() + timeout_ms
        while True:
            if records := self._core.take(count):
                return records
            left_ms = max(0, deadline_ms - self._client.now_ms())
            if not self._client.run_until(lambda: self._core.has_data, left_ms):
                return {}
