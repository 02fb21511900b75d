"""The sinks: Arrow batches in, idempotent produce out.

At least once, for a repeated task writes again; exactly once with ``transactionalIdPrefix``.
"""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.blocking.client import Client
from ottla.spark.errors import SparkRefused, refuse
from ottla.spark.exactly_once.task import TaskTransaction
from ottla.spark.exactly_once.writing import (
    Begun,
    Part,
    Place,
    abort_batch,
    batch_of,
    begin_batch,
    commit_batch,
    open_transaction,
    place_of_task,
)
from ottla.spark.options.write import WriteOptions
from ottla.spark.read.offsets import partition_numbers
from ottla.spark.runtime.connections import client_for
from ottla.spark.runtime.worker import settle_worker
from ottla.spark.write.identity import Identity, borrow_identity, keep_identity


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """How many records a task has seen acknowledged, or why its rows cannot be written.

    A refusal is no exception of the task: Spark would repeat what cannot succeed, and hide the sentence in a
    worker's stack. The driver raises it when it is asked to commit.
    """

    record_count: int
    refusal: SparkRefused | None = None
    part: Part | None = None
    """Of a batch that is written exactly once."""


class _Writer:
    """What batch and stream writers share. Spark makes one for a batch's start, and another for its end."""

    _is_stream = False

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._begun: Begun | None = None
        check_topic(options)

    def __getstate__(self) -> dict[str, Any]:
        """Spark pickles a writer on the driver, before a batch's tasks: there an exact batch begins."""
        if self._begun is None and self._options.exactly_once is not None:
            self._begun = begin_batch(self._options, is_stream=self._is_stream)
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        return write_rows(self._options, iterator, self._begun)

    def _commit(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        written = [message for message in messages if isinstance(message, Written)]
        raise_refusal(written)
        commit_batch(self._options, _parts(written))

    def _abort(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        abort_batch(self._options, _parts(messages))


class BatchWriter(_Writer, DataSourceArrowWriter):
    """``df.write.format("ottla").mode("append").save()``."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs on the driver, when all tasks have ended."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs on the driver, when a task or the commit has failed for good."""
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """``df.writeStream.format("ottla").option("checkpointLocation", ...).start()``."""

    _is_stream = True

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Runs on the driver, when all tasks of a micro-batch have ended."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Runs on the driver, when a micro-batch has failed for good."""
        self._abort(messages)


def _parts(messages: Iterable[WriterCommitMessage | None]) -> list[Part]:
    return [each.part for each in messages if isinstance(each, Written) and each.part is not None]


def raise_refusal(messages: Iterable[WriterCommitMessage | None]) -> None:
    """The first reason why a task could not write its rows."""
    for message in messages:
        if isinstance(message, Written) and message.refusal is not None:
            raise message.refusal


def check_topic(options: WriteOptions) -> None:
    """On the driver: the topic of the option exists, or the cluster makes it when asked."""
    if options.topic is not None:
        _Topics(client_for(options.kafka.client), options).count_of(options.topic)


def write_rows(
    options: WriteOptions,
    batches: Iterable[pa.RecordBatch],
    begun: Begun | None = None,
    place: Place | None = None,
) -> Written:
    """Write all rows of a task and wait until the cluster has them. Spark knows the task's ``place``."""
    try:
        return (
            _written_once(options, batches, begun, place or place_of_task())
            if begun
            else Written(_written(options, batches))
        )
    except SparkRefused as refused:
        return Written(0, refused)


def _written(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> int:
    client = client_for(options.kafka.client)
    identity = borrow_identity(client, options.kafka.producer)
    sent = _deliver(options, batches, identity)
    keep_identity(client, identity)
    return sent


def _written_once(
    options: WriteOptions, batches: Iterable[pa.RecordBatch], begun: Begun, place: Place
) -> Written:
    """The rows in a transaction that stays open; none if the batch is written already, or has no rows."""
    batch = batch_of(begun)
    if begun.start.skips(batch):
        return Written(0, part=Part(begun, batch, is_skipped=True))
    rows = (each for each in batches if each.num_rows)
    first = next(rows, None)
    if first is None:
        return Written(0, part=Part(begun, batch, is_skipped=False))
    transaction = open_transaction(client_for(options.kafka.client), options, begun, place)
    sent = _deliver(options, chain([first], rows), Identity(transaction.producer), transaction)
    return Written(sent, part=Part(begun, batch, False, transaction.prepare(sent)))


def _deliver(
    options: WriteOptions,
    batches: Iterable[pa.RecordBatch],
    identity: Identity,
    transaction: TaskTransaction | None = None,
) -> int:
    from ottla.spark.write.delivery import BatchSender
    from ottla.spark.write.encoding import ArrowEncoder

    client = client_for(options.kafka.client)
    config = options.kafka.producer
    topics = _Topics(client, options)
    encoder = ArrowEncoder(
        topic=options.topic,
        codec=config.codec,
        batch_bytes=config.batch_size,
        record_bytes_max=config.max_request_size,
        preserve_timestamp=options.preserve_timestamp,
        sticky=topics.any_partition,
    )
    sender = BatchSender(client, config, identity, transaction)
    seen = 0
    try:
        for rows in batches:
            counts = {name: topics.count_of(name) for name in encoder.topics(rows)} if rows.num_rows else {}
            for batch in encoder.encode(rows, counts, time.time_ns() // 1_000_000):
                sender.send(batch)
            seen += rows.num_rows
            settle_worker()
        sent = sender.flush()
    finally:
        sender.close()
    assert sent == seen, f"{seen} rows came, and {sent} records were written"
    return sent


class _Topics:
    """How many partitions topics have. A topic that does not exist is made, if the cluster does that."""

    def __init__(self, client: Client, options: WriteOptions) -> None:
        self._client = client
        self._options = options
        self._counts: dict[str, int] = {}

    def count_of(self, name: str) -> int:
        """The topic's partitions; refused by name if it does not come to be."""
        if name not in self._counts:
            self._counts[name] = self._ask(name)
        return self._counts[name]

    def any_partition(self, name: str) -> int:
        """One that has a leader, if any has; the next batch of rows may get another.

        The topic may have grown since it was counted: the task goes on with the partitions of its beginning.
        """
        count = self.count_of(name)
        topic = self._client.engine.metadata.topic(name)
        with_leader = topic.partitions_with_leader() if topic is not None else []
        counted = [number for number in with_leader if number < count]
        return random.choice(counted) if counted else random.randrange(count)

    def _ask(self, name: str) -> int:
        found = partition_numbers(self._client, self._options.kafka, [name])
        if found.get(name):
            self._client.engine.want_topics(name)
            return len(found[name])
        engine = self._client.engine
        engine.want_topics(name)  # Asking so makes the topic where auto.create.topics.enable says so.
        timeout_ms = min(self._options.kafka.producer.max_block_ms, 10_000)
        engine.refresh_soon()
        if not self._client.run_until(lambda: self._has_come(name), timeout_ms):
            raise refuse(
                "topic",
                name,
                f"the cluster has no such topic, and did not make it within {timeout_ms} ms",
                "create it, or correct the name",
            )
        topic = engine.metadata.topic(name)
        assert topic is not None, "it has just come"
        return len(topic.partitions)

    def _has_come(self, name: str) -> bool:
        engine = self._client.engine
        topic = engine.metadata.topic(name)
        if topic is not None and topic.partitions:
            return True
        engine.refresh_soon()
        return False
