"""A reader of committed records (librdkafka's): reads every partition from its first record on."""

from __future__ import annotations

import os

from confluent_kafka import Consumer, KafkaError, TopicPartition

from chaos.history import HistoryFile
from chaos.workers.common import QUICK, Orders, Task
from chaos.workers.pulse import Pulse, is_locked
from chaos.workers.reader import Reading


class CommittedReading(Reading):
    """Markers are not given to readers: where the last stable offset is behind one, the client says so."""

    def take(self, messages: list[object]) -> None:
        records = []
        for message in messages:
            error = message.error()  # type: ignore[attr-defined]
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                super().take(records)
                records = []
                partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
                self.positions[partition] = max(offset, self.positions.get(partition, 0))
            else:
                records.append(message)
        super().take(records)


def work(task: Task, orders: Orders) -> None:
    history = HistoryFile(task.directory, task.name)
    reading = CommittedReading(history)
    locked = []
    pulse = Pulse()
    consumer = _consumer(task, pulse, reading.positions)
    while not (orders.is_asked_to_stop or reading.has_reached(orders.ends)):
        reading.take(consumer.consume(500, 0.2))
        if pulse.is_silent() and is_locked(history):
            locked.append(consumer)  # Letting go of it would wait for its locks.
            pulse = Pulse()
            consumer = _consumer(task, pulse, reading.positions)
    reading.write()
    history.write("finished", positions=reading.positions)
    history.close()
    if locked:
        os._exit(0)
    consumer.close()


def _consumer(task: Task, pulse: Pulse, starts: dict[int, int]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": task.name,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUICK,
            **pulse.settings,
        }
    )
    consumer.assign([TopicPartition(task.topic, p, starts.get(p, 0)) for p in range(task.partitions)])
    return consumer
