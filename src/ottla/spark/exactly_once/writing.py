"""Exactly-once writing as Spark's writers do it: on the driver before and after a batch, and in its tasks."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from pyspark import TaskContext

from ottla.client.blocking.client import Client
from ottla.spark.errors import SparkRefused
from ottla.spark.exactly_once.decision import Batch, Prepared, Start
from ottla.spark.exactly_once.ids import task_id
from ottla.spark.exactly_once.kafka import KafkaCluster
from ottla.spark.exactly_once.protocol import Sink
from ottla.spark.exactly_once.task import TaskTransaction
from ottla.spark.options.write import ExactlyOnce, WriteOptions
from ottla.spark.runtime.connections import client_for

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Where a streaming query's tasks find which batch they work for."""


class Begun(NamedTuple):
    """What the driver hands to a batch's tasks; they hand it back with what they have written."""

    start: Start
    batch: Batch | None
    """``None`` in a stream: there only the tasks know."""


class Place(NamedTuple):
    """Which task of a batch, and which attempt of it."""

    task: int
    attempt: int


class Part(NamedTuple):
    """What a task did for a batch."""

    begun: Begun
    batch: Batch
    is_skipped: bool
    prepared: Prepared | None = None
    """``None`` if there were no rows."""


def begin_batch(options: WriteOptions, *, is_stream: bool) -> Begun:
    """On the driver, before the tasks."""
    wanted = _wanted(options)
    batch = None if is_stream else wanted.version or Batch(f"write {uuid.uuid4()}", 0)
    return Begun(_sink(options).begin(), batch)


def batch_of(begun: Begun) -> Batch:
    """In a task: which batch it works for."""
    if begun.batch is not None:
        return begun.batch
    context = TaskContext.get()
    query, number = (
        (None, None)
        if context is None
        else (context.getLocalProperty(QUERY), context.getLocalProperty(BATCH))
    )
    if query is None or number is None:
        raise SparkRefused(
            "Spark does not say for which batch a task works, and transactionalIdPrefix needs that",
            "write with foreachBatch, and name the batch with txnAppId and txnVersion",
        )
    return Batch(query, int(number))


def place_of_task() -> Place:
    """In a task: where Spark runs it."""
    context = TaskContext.get()
    return Place(0, 0) if context is None else Place(context.partitionId(), context.attemptNumber())


def open_transaction(client: Client, options: WriteOptions, begun: Begun, place: Place) -> TaskTransaction:
    """In a task: a transaction of its own, unless its driver was replaced meanwhile."""
    prefix = _wanted(options).prefix
    driver = begun.start.driver
    if not KafkaCluster(client, options.kafka.producer, prefix).is_current(driver):
        raise SparkRefused(
            f"this task's driver was replaced: transactionalIdPrefix={prefix!r} belongs to a later start",
            "let one query at a time use it",
        )
    return TaskTransaction(client, options.kafka.producer, task_id(prefix, driver.epoch, *place))


def commit_batch(options: WriteOptions, parts: Sequence[Part]) -> None:
    """On the driver, when all tasks have ended."""
    prepared = [part.prepared for part in parts if part.prepared is not None]
    if prepared:
        _sink(options).commit(parts[0].begun.start, parts[0].batch, prepared)


def abort_batch(options: WriteOptions, parts: Sequence[Part]) -> None:
    """On the driver, when a batch has failed."""
    prepared = [part.prepared for part in parts if part.prepared is not None]
    if prepared:
        _sink(options).abort(parts[0].begun.start, parts[0].batch, prepared)


def _sink(options: WriteOptions) -> Sink:
    wanted = _wanted(options)
    cluster = KafkaCluster(client_for(options.kafka.client), options.kafka.producer, wanted.prefix)
    return Sink(cluster, fails_on_loss=wanted.fails_on_loss)


def _wanted(options: WriteOptions) -> ExactlyOnce:
    assert options.exactly_once is not None, "asked for where transactionalIdPrefix is given"
    return options.exactly_once
