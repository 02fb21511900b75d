"""Records that keep coming while a query is disturbed, and what a topic holds in the end."""

from __future__ import annotations

from collections import Counter
from threading import Event, Thread
from types import TracebackType
from typing import Self

from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.blocking.producer import Producer
from ottla.client.fetching.offsets import list_offsets
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST

EVERY_S = 0.02
AT_ONCE = 10


class Feed:
    """Writes numbers to the partitions of a topic in turn, until it is told to stop."""

    def __init__(self, servers: str, topic: str, partitions: int, at_once: int = AT_ONCE) -> None:
        self.sent = 0
        self._topic = topic
        self.partitions = partitions
        """May grow while it runs."""
        self._servers = servers
        self._at_once = at_once
        self._stop = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """How many records were written, all of them acknowledged."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.sent

    def _run(self) -> None:
        try:
            with Client(self._servers) as client:
                producer = client.producer()
                while not self._stop.wait(EVERY_S):
                    self._feed(producer)
        except BaseException as error:  # noqa: BLE001 - told by stop()
            self._error = error

    def _feed(self, producer: Producer) -> None:
        numbers = range(self.sent, self.sent + self._at_once)
        sent = [producer.send(self._topic, b"%d" % n, partition=n % self.partitions) for n in numbers]
        for delivery in sent:
            producer.wait(delivery)
        self.sent = numbers.stop


def contents(servers: str, topic: str) -> dict[tuple[int, int], int]:
    """The numbers in a topic, by partition and offset, read by Ottla's own client."""
    with Client(servers) as client:
        (found,) = client.run(describe_topics, [topic]).topics
        partitions = [TopicPartition(topic, row.partition_index) for row in found.partitions]
        found_ends = client.run(list_offsets, dict.fromkeys(partitions, LATEST))
        ends = {partition: row.offset for partition, row in found_ends.items()}
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign(dict.fromkeys(partitions, 0))
        at = dict.fromkeys(partitions, 0)
        held: dict[tuple[int, int], int] = {}
        while any(at[p] < ends[p] for p in partitions):
            for partition, records in consumer.poll(5_000).items():
                for record in records:
                    held[partition.partition, record.offset] = int(record.value or b"")
                    at[partition] = record.offset + 1
    return held


def repeated(numbers: list[int]) -> int:
    """How many of them are there once too often."""
    return sum(count - 1 for count in Counter(numbers).values())
