"""What a query reads is what Spark's own connector would read: topics, ends, and refusals on the driver."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.options.read import ReadOptions, read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.batch import BatchReader
from ottla.spark.read.offsets import ClusterView, from_dict
from ottla.spark.read.ranges import OffsetRange, split_ranges
from ottla.spark.read.stream import StreamReader
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.apis.metadata import MetadataResponseTopic
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, FakeClient, serve
from support.client.fake_cluster import FakeCluster

ORDERS, NEXT = TopicPartition("orders", 0), TopicPartition("orders", 1)


class WithOwnTopics(FakeCluster):
    """Kafka's own topics are marked."""

    def _topic_row(self, name: str) -> MetadataResponseTopic:
        row = super()._topic_row(name)
        row.is_internal = name.startswith("__")
        return row


@pytest.fixture
def cluster() -> FakeCluster:
    made = WithOwnTopics()
    for name in ("orders", "old-orders", "__orders", "other"):
        made.topic(name, leaders=[1])
    made.logs[ORDERS].end_offset = 7
    return made


def options(*, is_stream: bool = True, **given: str) -> ReadOptions:
    where = {"kafka.bootstrap.servers": SERVERS, "startingOffsets": "earliest"}
    if "subscribePattern" not in given:
        where["subscribe"] = "orders"
    return read_options(where | given, is_stream=is_stream)


def a_reader(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **given: str) -> StreamReader:
    wanted = options(**given)
    serve(monkeypatch, cluster, wanted.kafka.client)
    return StreamReader(wanted, read_schema(False))


def topics(cluster: FakeCluster, pattern: str) -> list[str]:
    view = ClusterView(FakeClient(cluster), options(subscribePattern=pattern))  # type: ignore[arg-type]
    found = [partition.topic for partition in view.partitions()]
    assert sorted(view.topic_ids) == found, "nothing is said of topics that are not read"
    return found


def test_a_pattern_is_looked_for_anywhere_in_a_name(cluster: FakeCluster) -> None:
    assert topics(cluster, "rder") == ["old-orders", "orders"]
    assert topics(cluster, "^orders$") == ["orders"]
    assert topics(cluster, "invoice") == []


def test_a_pattern_does_not_mean_kafkas_own_topics(cluster: FakeCluster) -> None:
    assert topics(cluster, ".*") == ["old-orders", "orders", "other"]


def ends_at(offset: int) -> Any:
    def answer(message: ListOffsetsRequest) -> ListOffsetsResponse:
        rows = [ListOffsetsPartitionResponse(partition_index=0, offset=offset)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=rows)])

    return answer


def test_an_end_before_what_was_read_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    reader = a_reader(monkeypatch, cluster)
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    cluster.script(ApiKey.LIST_OFFSETS, ends_at(3), ends_at(5))
    began_ms = cluster.now_ms

    assert from_dict(reader.latestOffset(start, ReadAllAvailable())) == {ORDERS: 7}
    assert cluster.now_ms - began_ms >= 2_000, "fetchOffset.retryIntervalMs lies between"
    cluster.script(ApiKey.LIST_OFFSETS, *[ends_at(3)] * 3)
    with pytest.raises(DataLoss, match="orders-0 ends at 3, and was read up to 7"):
        reader.latestOffset(start, ReadAllAvailable())


def test_a_topic_that_is_deleted_while_its_end_is_asked_for_is_gone_and_no_cluster_that_is_unreachable(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    reader = a_reader(monkeypatch, cluster, subscribePattern="^orders$")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    def deleted(message: Any) -> ListOffsetsResponse:
        del cluster.topic_ids["orders"]
        row = ListOffsetsPartitionResponse(partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[row])])

    cluster.script(ApiKey.LIST_OFFSETS, deleted)

    with pytest.raises(DataLoss, match="orders-0 is gone; it was read up to offset 7"):
        reader.latestOffset(start, ReadAllAvailable())


def test_a_least_of_nothing_is_no_limit(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster) -> None:
    reader = a_reader(monkeypatch, cluster, minOffsetsPerTrigger="0")
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    cluster.logs[ORDERS].end_offset = 8

    assert from_dict(reader.latestOffset(first, ReadAllAvailable())) == {ORDERS: 8}


def planned(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **given: str) -> list[str]:
    wanted = options(is_stream=False, **given)
    serve(monkeypatch, cluster, wanted.kafka.client)
    return [str(piece) for piece in BatchReader(wanted, read_schema(False)).partitions()]


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"0":3}}'},
            "option startingOffsets and endingOffsets: orders-0 would be read from 5 to 3; let the end not",
        ),
        (
            {"startingOffsets": '{"orders":{"0":9}}'},
            r"option startingOffsets: orders-0 ends at 7, before 9; take an offset that exists",
        ),
        (
            {"endingOffsets": '{"orders":{"0":1}}'},
            r"option endingOffsets: orders-0 would be read from 2 to 1",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"orders":{"0":2000}}',
                "endingOffsetsByTimestamp": '{"orders":{"0":1000}}',
            },
            r"option startingOffsetsByTimestamp='orders-0: 2000': endingOffsetsByTimestamp is 1000; let it",
        ),
    ],
)
def test_a_batch_that_begins_behind_its_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, given: dict[str, str], said: str, fails: str
) -> None:
    cluster.logs[ORDERS].start_offset = 2

    with pytest.raises(SparkRefused, match=said):
        planned(monkeypatch, cluster, failOnDataLoss=fails, **given)


def test_a_batch_between_two_times_that_are_reversed_is_refused(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    cluster.script(ApiKey.LIST_OFFSETS, ends_at(5), ends_at(3))

    with pytest.raises(SparkRefused, match="option startingTimestamp and endingTimestamp: orders-0 would be"):
        planned(monkeypatch, cluster, startingTimestamp="2000", endingTimestamp="1000")


def test_a_batch_from_the_earliest_offset_lets_retention_work(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    def shortened(message: ListOffsetsRequest) -> ListOffsetsResponse:
        answer = cluster._list_offsets(1, message)
        cluster.logs[ORDERS].start_offset = 2
        return answer

    cluster.script(ApiKey.LIST_OFFSETS, shortened)
    assert planned(monkeypatch, cluster, startingOffsets='{"orders":{"0":-2}}') == ["orders-0 [0, 7)"]
    with pytest.raises(DataLoss, match=r"offsets \[1, 2\) of orders-0 are no longer in the log"):
        planned(monkeypatch, cluster, startingOffsets='{"orders":{"0":1}}')


def test_only_the_first_piece_of_a_range_begins_where_the_log_begins() -> None:
    pieces = split_ranges([OffsetRange(ORDERS, 0, 9, None, True), OffsetRange(NEXT, 0, 9)], None, 5)

    assert [piece.is_from_earliest for piece in pieces] == [True, False, False, False]


def test_pieces_of_a_partition_are_split_again_all_or_none() -> None:
    pieces = split_ranges([OffsetRange(ORDERS, 0, 9)], 3, 5)

    assert [(piece.start, piece.end) for piece in pieces] == [(0, 4), (4, 9)]
