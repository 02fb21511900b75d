"""A consumer by assignment: reads every partition from its first record on, and keeps what it was given."""

from __future__ import annotations

import os
import time

from confluent_kafka import Consumer, TopicPartition

from chaos.history import HistoryFile, Runs, read_value
from chaos.workers.common import QUICK, Orders, Task
from chaos.workers.pulse import Pulse, is_locked

WRITE_EVERY_S = 0.25
WORDY = {"log_level": 7, "debug": "topic,consumer,metadata"}
"""A reader that hangs has to explain itself; its log tells each change of a leader, not each fetch."""


class Reading:
    """Gathers what a consumer was given; shared by readers and members."""

    def __init__(self, history: HistoryFile) -> None:
        self._history = history
        self._runs: dict[int, Runs] = {}
        self._wrote = time.monotonic()
        self.positions: dict[int, int] = {}

    def take(self, messages: list[object]) -> None:
        for message in messages:
            if message.error() is not None:  # type: ignore[attr-defined]
                self._history.write("complained", why=str(message.error()))  # type: ignore[attr-defined]
                continue
            partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
            producer, home, seq = read_value(message.value())  # type: ignore[attr-defined]
            if home != partition:
                producer = 0xFFFF
            self._runs.setdefault(partition, Runs()).add(producer, seq, offset)
            self.positions[partition] = offset + 1
        if time.monotonic() - self._wrote > WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        self._wrote = time.monotonic()
        for partition, runs in self._runs.items():
            self._history.write("read", partition=partition, runs=runs.rows)
        self._runs.clear()
        self._history.flush()

    def has_reached(self, ends: dict[int, int] | None) -> bool:
        return ends is not None and all(self.positions.get(p, 0) >= end for p, end in ends.items())


def work(task: Task, orders: Orders) -> None:
    history = HistoryFile(task.directory, task.name)
    starts = {int(p): offset for p, offset in task.options.get("starts", {}).items()}
    reading = Reading(history)
    reading.positions.update(starts)
    locked = []
    pulse = Pulse()
    consumer = _consumer(task, pulse, starts)
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
            **QUICK,
            **WORDY,
            **pulse.settings,
        }
    )
    consumer.assign([TopicPartition(task.topic, p, starts.get(p, 0)) for p in range(task.partitions)])
    return consumer
