"""A stream's first batch is the same when it is repeated, wherever the query would begin by then."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.options.read import read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.offsets import from_dict
from ottla.spark.read.stream import StreamReader
from support.client.fake_client import SERVERS, serve
from support.client.fake_cluster import FakeCluster, FakeLog

ORDERS, NEXT = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.topic("orders", leaders=[1])
    made.logs[ORDERS].end_offset = 7
    return made


@pytest.fixture
def a_reader(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster) -> Any:
    def make(**given: str) -> StreamReader:
        where = {"kafka.bootstrap.servers": SERVERS, "subscribe": "orders", "startingOffsets": "earliest"}
        options = read_options(where | given, is_stream=True)
        serve(monkeypatch, cluster, options.kafka.client)
        return StreamReader(options, read_schema(False))

    return make


def ranges(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    return [str(piece) for piece in reader.partitions(start, end)]


def test_a_repeated_first_batch_begins_where_it_began(cluster: FakeCluster, a_reader: Any) -> None:
    first = a_reader()
    end = first.latestOffset(first.initialOffset(), ReadMaxRows(5))

    cluster.logs[ORDERS].start_offset = 3  # Meanwhile retention has worked.
    again = a_reader()

    assert from_dict(again.initialOffset()) == {ORDERS: 3}
    assert ranges(again, again.initialOffset(), end) == ["orders-0 [0, 5)"], "the task tells what is lost"
    cluster.logs[ORDERS].start_offset = 6
    last = a_reader()
    assert ranges(last, last.initialOffset(), end) == ["orders-0 [0, 5)"]


def test_the_first_batch_of_a_new_partition_begins_where_it_began(
    cluster: FakeCluster, a_reader: Any
) -> None:
    reader = a_reader()
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    cluster.logs[NEXT] = FakeLog(leader=2, end_offset=4)
    end = reader.latestOffset(start, ReadAllAvailable())

    cluster.logs[NEXT].start_offset = 2

    assert ranges(a_reader(), start, end) == ["orders-1 [0, 4)"]


def test_a_first_batch_of_an_old_checkpoint_that_cannot_be_repeated_is_told(
    cluster: FakeCluster, a_reader: Any
) -> None:
    cluster.logs[ORDERS].start_offset = 6
    strict, lenient = a_reader(), a_reader(failOnDataLoss="false")

    with pytest.raises(DataLoss, match="a batch ended at 5 of orders-0, and would begin at 6"):
        ranges(strict, strict.initialOffset(), {"orders": {"0": 5}})
    assert ranges(lenient, lenient.initialOffset(), {"orders": {"0": 5}}) == []


def test_nothing_new_is_said_to_the_letter(cluster: FakeCluster, a_reader: Any) -> None:
    reader = a_reader()
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadAllAvailable())

    assert reader.latestOffset(first, ReadAllAvailable()) == first
    cluster.logs[ORDERS].end_offset = 8
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {"orders": {"0": 8}, "topic ids": first["topic ids"]}, "later batches need no more"
    assert ranges(reader, first, second) == ["orders-0 [7, 8)"]


def test_a_query_over_what_there_is_may_begin_at_the_latest_offset_of_a_topic_that_grows(
    cluster: FakeCluster, a_reader: Any
) -> None:
    reader = a_reader(startingOffsets="latest")

    reader.prepareForTriggerAvailableNow()
    cluster.logs[ORDERS].end_offset = 8
    start = reader.initialOffset()
    cluster.logs[ORDERS].end_offset = 9
    first = reader.latestOffset(start, ReadMaxRows(1))
    cluster.logs[ORDERS].end_offset = 20

    assert (from_dict(start), from_dict(first)) == ({ORDERS: 8}, {ORDERS: 9})
    assert reader.latestOffset(first, ReadMaxRows(1)) == first, "it ends where the log ended"
