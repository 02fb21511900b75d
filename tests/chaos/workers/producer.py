"""An idempotent producer with acks=all: every record carries its producer, partition and number."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from chaos.history import HistoryFile, Runs, make_value, read_value
from chaos.workers.common import QUICK, Count, Orders, Task
from chaos.workers.java_producer import JavaProducer
from chaos.workers.own_producer import OwnProducer

OUTSTANDING_MAX = 20_000
"""A partition that is not led keeps so many records waiting and no more."""
WRITE_EVERY_S = 0.1
BURST = 200
UNPLACED = -1


class Load:
    """One producer and its history."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._number = int(task.options["number"])
        self._rate = float(task.options["rate"])
        self._history = HistoryFile(task.directory, task.name)
        self._count = Count(task.directory, task.name)
        self._next = [0] * task.partitions
        self._waiting = [0] * task.partitions
        self._told = [0] * task.partitions
        self._acked: list[Runs] = [Runs() for _ in range(task.partitions)]
        self._unplaced: list[Runs] = [Runs() for _ in range(task.partitions)]
        self._failed: list[tuple[int, int, str]] = []
        self._padding = random.Random(self._number).randbytes(int(task.options["bytes"]))
        self._producer = PRODUCERS[task.options["client"]](task)

    def run(self, orders: Orders) -> None:
        began = wrote = time.monotonic()
        sent = 0
        while not orders.is_asked_to_stop:
            now = time.monotonic()
            wanted = int((now - began) * self._rate) - sent
            if wanted > BURST * 10:  # what could not be sent in an outage is not caught up in one go
                began += (wanted - BURST * 10) / self._rate
            sent += self._send(min(wanted, BURST))
            self._producer.poll(0.005)
            if now - wrote > WRITE_EVERY_S:
                wrote = now
                self._write()
        self._producer.flush(120)
        self._write()
        self._history.write("finished", unanswered=sum(self._waiting))
        self._history.close()

    def _send(self, count: int) -> int:
        partitions = [p for p, waiting in enumerate(self._waiting) if waiting < OUTSTANDING_MAX]
        if not partitions:
            return count
        for index in range(count):
            partition = partitions[index % len(partitions)]
            seq = self._next[partition]
            value = make_value(self._number, partition, seq, self._padding)
            try:
                self._producer.produce(
                    self._task.topic, value, partition=partition, on_delivery=self._delivered
                )
            except BufferError:
                return index
            except KafkaException as error:
                if error.args[0].fatal():
                    raise
                return index  # no broker knows the topic at this moment
            self._next[partition] += 1
            self._waiting[partition] += 1
        return count

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value: Any = message.value()
        _, partition, seq = read_value(value)
        self._waiting[partition] -= 1
        if error is None:
            offset = message.offset()
            if offset is None:  # the answer was lost, and a later batch's answer told that it was written
                self._unplaced[partition].add(self._number, seq, UNPLACED)
            else:
                self._acked[partition].add(self._number, seq, offset)
            self._count.add()
        else:
            self._failed.append((partition, seq, str(error)))

    def _write(self) -> None:
        if self._next != self._told:
            self._told = list(self._next)
            self._history.write("sent", number=self._number, ends=self._told)
        for partition, runs in enumerate(self._acked):
            if runs.rows:
                self._history.write("acked", partition=partition, runs=runs.rows)
                self._acked[partition] = Runs()
        for partition, runs in enumerate(self._unplaced):
            if runs.rows:
                self._history.write("acked unplaced", partition=partition, runs=runs.rows)
                self._unplaced[partition] = Runs()
        for partition, seq, why in self._failed:
            self._history.write("failed", partition=partition, seq=seq, why=why)
        self._failed.clear()
        self._history.flush()
        self._count.write()


def _librdkafka(bootstrap: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 10,
            "message.timeout.ms": 600_000,
            "request.timeout.ms": 10_000,
            "queue.buffering.max.messages": 1_000_000,
            **QUICK,
        }
    )


PRODUCERS: dict[str, Callable[[Task], Any]] = {
    "librdkafka": lambda task: _librdkafka(task.bootstrap),
    "java": lambda task: JavaProducer(task.bootstrap, task.topic),
    "ottla": lambda task: OwnProducer(task.bootstrap),
}


def work(task: Task, orders: Orders) -> None:
    Load(task).run(orders)
