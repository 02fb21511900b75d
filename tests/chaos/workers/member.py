"""A member of a consumer group: polls, commits once a second, keeps what it was given and told."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.history import HistoryFile
from chaos.workers.common import QUICK, Orders, Task
from chaos.workers.pulse import Pulse, begin_again_when_locked
from chaos.workers.reader import Reading

COMMIT_EVERY_S = 1.0
COMMITTED_TIMEOUT_S = 8.0
SILENT_S = 45.0
"""Longer than a commit may have to wait for a coordinator: its statistics come with its calls."""


class Member:
    """One member and its history."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._history = HistoryFile(task.directory, task.name)
        self._reading = Reading(self._history)
        self._is_leaving = False
        self._pulse = Pulse()
        self._consumer = Consumer(
            {
                "bootstrap.servers": task.bootstrap,
                "group.id": str(task.options["group"]),
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 1_000,
                "partition.assignment.strategy": str(task.options["strategy"]),
                **QUICK,
                **self._pulse.settings,
                "log_level": 7,
                "debug": "cgrp",  # If it starves, its log says what it waits for.
            }
        )

    def run(self, orders: Orders) -> None:
        begin_again_when_locked(self._pulse, self._history, SILENT_S)
        self._consumer.subscribe([self._task.topic], on_assign=self._assigned, on_revoke=self._revoked)
        committed = time.monotonic()
        while not orders.is_asked_to_stop:
            self._reading.take(self._consumer.consume(500, 0.2))
            if time.monotonic() - committed > COMMIT_EVERY_S or orders.ends is not None:
                self._commit()
                committed = time.monotonic()
        self._is_leaving = True  # it is told to stop when the group has committed everything
        self._reading.write()
        self._consumer.close()
        self._history.write("finished")
        self._history.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Write down where the group's commit stands; the client begins there by itself."""
        self._reading.write()
        asked = time.monotonic()
        offsets: dict[int, int] = {}
        if partitions:
            try:
                found = consumer.committed(partitions, COMMITTED_TIMEOUT_S)
                offsets = {each.partition: each.offset for each in found if each.error is None}
            except KafkaException as error:
                self._history.write("complained", why=str(error))
        for each in partitions:
            self._reading.positions.pop(each.partition, None)
        self._history.write(
            "assigned", partitions=[p.partition for p in partitions], asked=asked, offsets=offsets
        )

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._reading.write()
        for each in partitions:
            self._reading.positions.pop(each.partition, None)
        self._history.write("revoked", partitions=[p.partition for p in partitions])

    def _commit(self) -> None:
        self._reading.write()
        wanted = [TopicPartition(self._task.topic, p, o) for p, o in self._reading.positions.items()]
        if not wanted or self._is_leaving:
            return
        began = time.monotonic()
        try:
            accepted = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            self._history.write("complained", why=str(error))
            return
        offsets = {each.partition: each.offset for each in accepted if each.error is None}
        self._history.write("committed", began=began, offsets=offsets)


def work(task: Task, orders: Orders) -> None:
    Member(task).run(orders)
