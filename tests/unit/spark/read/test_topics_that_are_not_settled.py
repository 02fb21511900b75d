"""What a cluster says before it knows its topics is no answer: no query may begin, or forget, by it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss, OptionRefused
from ottla.spark.options.read import ReadOptions, read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.offsets import ClusterView, from_dict
from ottla.spark.read.stream import StreamReader
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, FakeClient, serve
from support.client.fake_cluster import FakeCluster

ORDERS = TopicPartition("orders", 0)
NEXT_ID = bytes(15) + b"\x09"


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.topic("orders", leaders=[1])
    made.logs[ORDERS].end_offset = 7
    return made


def options(**given: str) -> ReadOptions:
    where = {"kafka.bootstrap.servers": SERVERS, "startingOffsets": "earliest"}
    if "subscribePattern" not in given:
        where["subscribe"] = "orders"
    return read_options(where | given, is_stream=True)


def unsettled(cluster: FakeCluster, *rows: MetadataResponseTopic, controller: int = 1) -> Any:
    """A broker's answer as it is just after a restart of the cluster."""

    def answer(message: Any) -> MetadataResponse:
        response = cluster._metadata(1, message)
        response.topics, response.controller_id = list(rows), controller
        return response

    return answer


def not_available(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, error_code=ErrorCode.LEADER_NOT_AVAILABLE)


def a_reader(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **given: str) -> StreamReader:
    wanted = options(**given)
    serve(monkeypatch, cluster, wanted.kafka.client)
    return StreamReader(wanted, read_schema(False))


def test_a_topic_whose_leader_is_not_available_is_asked_for_again(cluster: FakeCluster) -> None:
    cluster.script(ApiKey.METADATA, *[unsettled(cluster, not_available("orders"))] * 3)

    assert ClusterView(FakeClient(cluster), options()).partitions() == [ORDERS]  # type: ignore[arg-type]


def test_a_pattern_waits_for_a_controller(cluster: FakeCluster) -> None:
    cluster.script(ApiKey.METADATA, *[unsettled(cluster, controller=-1)] * 3)
    view = ClusterView(FakeClient(cluster), options(subscribePattern="ord.*"))  # type: ignore[arg-type]

    assert view.partitions() == [ORDERS]


def test_a_topic_that_never_becomes_available_is_refused_with_the_cause(cluster: FakeCluster) -> None:
    cluster.script(ApiKey.METADATA, *[unsettled(cluster, not_available("orders"))] * 1000)
    view = ClusterView(FakeClient(cluster), options())  # type: ignore[arg-type]

    with pytest.raises(OptionRefused, match=r"60000 ms; last cause: LEADER_NOT_AVAILABLE: orders"):
        view.partitions()


def test_a_stream_remembers_how_far_it_read_a_topic_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    (its_id,) = cluster.topic_ids.values()

    del cluster.topic_ids["orders"]
    gone = reader.latestOffset(start, ReadAllAvailable())
    still = reader.latestOffset(gone, ReadAllAvailable())
    cluster.topic_ids["orders"] = its_id
    back = reader.latestOffset(still, ReadAllAvailable())

    assert start == gone == still == back, "nothing is read twice"
    told = [record.getMessage() for record in caplog.records if "data loss" in record.getMessage()]
    assert told == ["data loss what=orders-0 is gone; it was read up to offset 7"]


def test_a_topic_that_was_gone_and_is_another_is_read_from_its_start(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    strict = a_reader(monkeypatch, cluster)
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    del cluster.topic_ids["orders"]
    with pytest.raises(DataLoss, match="orders-0 is gone; it was read up to offset 7"):
        strict.latestOffset(start, ReadAllAvailable())
    gone = reader.latestOffset(start, ReadAllAvailable())
    cluster.topic_ids["orders"] = NEXT_ID
    back = reader.latestOffset(gone, ReadAllAvailable())

    assert from_dict(back) == {ORDERS: 7}
    (piece,) = reader.partitions(gone, back)
    assert str(piece) == "orders-0 [0, 7)"


def test_the_end_of_a_topic_that_is_made_again_while_it_is_asked_for_is_not_the_old_ones(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    """The id was the old topic's, the end the new one's: rows of the new one passed for the old one's."""
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    def remake(message: Any) -> Any:
        cluster.topic_ids["orders"] = NEXT_ID
        cluster.logs[ORDERS].end_offset = 9
        return cluster._list_offsets(1, message)

    cluster.script(ApiKey.LIST_OFFSETS, remake)
    end = reader.latestOffset(start, ReadAllAvailable())
    (planned,) = reader.partitions(start, end)

    assert (planned.start, planned.end, planned.topic_id) == (0, 9, NEXT_ID)  # type: ignore[attr-defined]
