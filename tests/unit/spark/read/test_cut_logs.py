"""A log that an unclean election cut below what a stream has read, however far it has grown since."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ottla.client.config import ClientConfig
from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.options.read import read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.offsets import began_at, epochs_of, from_dict
from ottla.spark.read.stream import StreamReader
from ottla.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, serve
from support.client.fake_cluster import FakeCluster

ORDERS = TopicPartition("orders", 0)
RECEIPT = {"new_leader": 2, "leader_epoch": 4, "old_isr": [1], "offset": 17}


class WithEpochs(FakeCluster):
    """Logs know where each leader epoch began."""

    def __init__(self) -> None:
        super().__init__()
        self.topic("orders", leaders=[1])
        self.log = self.logs[ORDERS]
        self.starts = {3: 0}
        self.log.leader_epoch, self.log.end_offset = 3, 2_000

    def elect_uncleanly(self, end_offset: int, grown_to: int) -> None:
        """Another leader, whose log ends at an offset, and has taken more since."""
        self.move_leader(ORDERS, 2)
        self.starts = {epoch: start for epoch, start in self.starts.items() if start < end_offset}
        self.starts[self.log.leader_epoch] = end_offset
        self.log.end_offset = grown_to

    def _list_offsets(self, broker: int, message: ListOffsetsRequest) -> ListOffsetsResponse:
        response = super()._list_offsets(broker, message)
        for topic in response.topics:
            for row in topic.partitions:
                row.leader_epoch = self.log.leader_epoch
        return response

    def _response(self, broker: int, api_key: int, message: Any) -> Any:
        if api_key == ApiKey.OFFSET_FOR_LEADER_EPOCH:
            return self._epoch_ends(message)
        return super()._response(broker, api_key, message)

    def _epoch_ends(self, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        asked = message.topics[0].partitions[0].leader_epoch
        later = [start for epoch, start in self.starts.items() if epoch > asked]
        row = EpochEndOffset(partition=0, end_offset=min(later, default=self.log.end_offset))
        row.leader_epoch = max((epoch for epoch in self.starts if epoch <= asked), default=-1)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="orders", partitions=[row])]
        )


def no_receipt(cluster: ClientConfig, partition: TopicPartition, epoch: int) -> dict[str, Any] | None:
    return None


def a_receipt(cluster: ClientConfig, partition: TopicPartition, epoch: int) -> dict[str, Any] | None:
    assert (partition, epoch) == (ORDERS, 3)
    return RECEIPT


@pytest.fixture
def cluster() -> WithEpochs:
    return WithEpochs()


def a_reader(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, find: Any = no_receipt, **given: str
) -> StreamReader:
    where = {"kafka.bootstrap.servers": SERVERS, "startingOffsets": "earliest", "subscribe": "orders"}
    wanted = read_options(where | given, is_stream=True)
    serve(monkeypatch, cluster, wanted.kafka.client)
    return StreamReader(wanted, read_schema(False), find)


def read_all(reader: StreamReader) -> dict[str, Any]:
    return reader.latestOffset(reader.initialOffset(), ReadAllAvailable())


def test_the_checkpoint_keeps_leader_epochs_and_quiet_triggers_change_nothing(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs
) -> None:
    reader = a_reader(monkeypatch, cluster)
    at = read_all(reader)

    assert (from_dict(at), epochs_of(at)) == ({ORDERS: 2_000}, {ORDERS: 3})
    assert reader.latestOffset(at, ReadAllAvailable()) == at
    cluster.starts[4] = 2_000
    cluster.move_leader(ORDERS, 2)
    assert reader.latestOffset(at, ReadAllAvailable()) == at, "a clean election is no batch"
    assert len(cluster.requests(ApiKey.OFFSET_FOR_LEADER_EPOCH)) == 3, "one for each trigger"


def test_a_log_that_was_cut_and_has_grown_past_what_was_read_stops_the_query(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs
) -> None:
    told = a_reader(monkeypatch, cluster, a_receipt)
    at = read_all(told)
    cluster.elect_uncleanly(end_offset=1_000, grown_to=4_000)

    with pytest.raises(
        DataLoss,
        match=r"offsets \[1000, 2000\) of orders-0 were read in leader epoch 3 and are gone: the log was cut"
        r" at 1000 when broker 2 was elected uncleanly in epoch 4 while the in-sync replicas \[1\] were"
        r" offline \(receipt: __ottla_decisions offset 17\)",
    ):
        told.latestOffset(at, ReadAllAvailable())
    with pytest.raises(DataLoss, match="as an unclean election does; broker 2 leads in epoch 4"):
        a_reader(monkeypatch, cluster).latestOffset(at, ReadAllAvailable())


@pytest.mark.parametrize("grown_to", [1_500, 2_000, 4_000])
def test_told_so_the_query_goes_on_where_the_log_was_cut_and_only_once(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs, grown_to: int
) -> None:
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    at = read_all(reader)
    cluster.elect_uncleanly(end_offset=1_000, grown_to=grown_to)

    end = reader.latestOffset(at, ReadAllAvailable())

    (piece,) = reader.partitions(at, end)
    assert (piece.start, piece.end) == (1_000, grown_to)  # type: ignore[attr-defined]
    assert (began_at(end), epochs_of(end)) == ({ORDERS: 1_000}, {ORDERS: 4})
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    again = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    assert again.partitions(at, end) == [piece], "a restart plans the same"


def test_limits_count_from_the_cut(monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs) -> None:
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    at = read_all(reader)
    cluster.elect_uncleanly(end_offset=1_000, grown_to=4_000)

    end = reader.latestOffset(at, ReadMaxRows(500))

    assert (from_dict(end), began_at(end)) == ({ORDERS: 1_500}, {ORDERS: 1_000})
    assert from_dict(reader.latestOffset(end, ReadMaxRows(500))) == {ORDERS: 2_000}


def test_a_query_that_ends_by_itself_ends_where_the_new_log_does(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs
) -> None:
    reader = a_reader(monkeypatch, cluster, failOnDataLoss="false")
    reader.prepareForTriggerAvailableNow()
    at = reader.latestOffset(reader.initialOffset(), ReadMaxRows(1_500))
    cluster.elect_uncleanly(end_offset=1_000, grown_to=1_200)

    end = reader.latestOffset(at, ReadAllAvailable())

    assert (from_dict(end), began_at(end)) == ({ORDERS: 1_200}, {ORDERS: 1_000})
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_batch_that_was_planned_before_the_cut_is_not_repeated_in_silence(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs
) -> None:
    first = a_reader(monkeypatch, cluster)
    start = first.initialOffset()
    end = first.latestOffset(start, ReadAllAvailable())
    cluster.elect_uncleanly(end_offset=1_000, grown_to=4_000)

    with pytest.raises(DataLoss, match=r"offsets \[1000, 2000\) of orders-0"):
        a_reader(monkeypatch, cluster).partitions(start, end)


def test_a_broker_that_knows_no_epochs_is_read_as_before(
    monkeypatch: pytest.MonkeyPatch, cluster: WithEpochs
) -> None:
    del cluster.versions[ApiKey.OFFSET_FOR_LEADER_EPOCH]
    reader = a_reader(monkeypatch, cluster)
    at = read_all(reader)
    cluster.log.end_offset = 2_500

    assert from_dict(reader.latestOffset(at, ReadAllAvailable())) == {ORDERS: 2_500}
