"""A task's range is fetched to its end, from whoever serves it, or the task says what is lost."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

from ottla.client.config import ConsumerConfig
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.options.kafka_settings import kafka_settings
from ottla.spark.read.fetch import RangeFetcher, Source, TopicRemade, fetch_once
from ottla.spark.read.ranges import OffsetRange
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, FakeClient
from support.client.two_copies import FOLLOWER, LEADER, ORDERS, TwoCopies

NEARBY = "nearby"


@pytest.fixture
def cluster() -> TwoCopies:
    return TwoCopies()


def a_fetcher(
    cluster: TwoCopies, end: int, *, rack: str = "", fails: bool = True, topic_id: TopicId | None = None
) -> RangeFetcher:
    return RangeFetcher(
        FakeClient(cluster),  # type: ignore[arg-type]
        ConsumerConfig(client_rack=rack),
        OffsetRange(ORDERS, 0, end, topic_id),
        poll_timeout_ms=120_000,
        fail_on_data_loss=fails,
    )


def fetched(fetcher: RangeFetcher) -> list[tuple[int, int]]:
    """Where each chunk begins and ends."""
    return [(chunk.fetch_offset, chunk.end_offset() or -1) for chunk in fetcher.chunks()]


def served_by(cluster: TwoCopies) -> list[int]:
    return [broker for broker, _, _ in cluster.requests(ApiKey.FETCH)]


def test_a_reader_with_a_rack_follows_the_leader_to_the_replica_nearby(cluster: TwoCopies) -> None:
    cluster.racks[NEARBY] = FOLLOWER
    cluster.write(3, LEADER, FOLLOWER)

    assert fetched(a_fetcher(cluster, 3, rack=NEARBY)) == [(0, 3)]
    assert served_by(cluster) == [LEADER, FOLLOWER]


def test_a_replica_that_lags_or_refuses_sends_the_reader_back_to_the_leader(cluster: TwoCopies) -> None:
    cluster.racks[NEARBY] = FOLLOWER
    cluster.write(1, LEADER, FOLLOWER)
    cluster.write(2, LEADER)

    assert fetched(a_fetcher(cluster, 3, rack=NEARBY)) == [(0, 1), (1, 3)]
    assert served_by(cluster) == [LEADER, FOLLOWER, FOLLOWER, LEADER]

    cluster.asked.clear()
    cluster.copies[FOLLOWER].start_offset = 1
    assert fetched(a_fetcher(cluster, 3, rack=NEARBY)) == [(0, 3)]
    assert served_by(cluster) == [LEADER, FOLLOWER, LEADER]


def test_a_replica_that_nobody_knows_is_not_asked(cluster: TwoCopies) -> None:
    cluster.racks[NEARBY] = 77
    cluster.write(3, LEADER)

    assert fetched(a_fetcher(cluster, 3, rack=NEARBY)) == [(0, 3)]


def test_a_log_that_was_cut_at_the_position_is_told_as_lost(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER)

    with pytest.raises(DataLoss, match=r"offsets \[3, 9\) of orders-0 are beyond the end of the log"):
        fetched(a_fetcher(cluster, 9))
    assert fetched(a_fetcher(cluster, 9, fails=False)) == [(0, 3)]


def test_a_new_leader_that_does_not_know_yet_what_is_committed_is_waited_for(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER)
    unsure = PartitionData(high_watermark=0, log_start_offset=0)
    empty = FetchResponse(responses=[FetchableTopicResponse(partitions=[unsure])])
    cluster.script(ApiKey.FETCH, *[empty] * 12)

    assert fetched(a_fetcher(cluster, 3)) == [(0, 3)]


def test_offsets_that_retention_took_are_told_as_before(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER)
    cluster.copies[LEADER].start_offset = 2
    gone = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    cluster.script(ApiKey.FETCH, FetchResponse(responses=[FetchableTopicResponse(partitions=[gone])]))

    with pytest.raises(DataLoss, match=r"offsets \[0, 2\) of orders-0 are no longer in the log"):
        fetched(a_fetcher(cluster, 3))


def test_what_retention_takes_from_a_range_that_begins_where_the_log_does_is_no_loss(
    cluster: TwoCopies,
) -> None:
    cluster.write(3, LEADER)
    cluster.copies[LEADER].start_offset = 2
    gone = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    cluster.script(ApiKey.FETCH, FetchResponse(responses=[FetchableTopicResponse(partitions=[gone])]))
    fetcher = a_fetcher(cluster, 3)
    fetcher._range = replace(fetcher._range, is_from_earliest=True)

    assert fetched(fetcher) == [(2, 3)]


def test_a_range_of_a_topic_that_was_made_again_is_lost_and_never_read_from_the_other(
    cluster: TwoCopies,
) -> None:
    planned = TopicId(cluster.topic_ids["orders"])
    cluster.write(3, LEADER)
    assert fetched(a_fetcher(cluster, 3, topic_id=planned)) == [(0, 3)]
    cluster.topic_ids["orders"] = bytes(15) + b"\x09"

    with pytest.raises(DataLoss, match=r"\[0, 3\) of orders-0 are gone with their topic, which was deleted"):
        fetched(a_fetcher(cluster, 3, topic_id=planned))
    assert fetched(a_fetcher(cluster, 3, topic_id=planned, fails=False)) == []


def test_a_topic_that_was_made_again_is_told_to_its_own_task_alone(cluster: TwoCopies) -> None:
    planned = TopicId(cluster.topic_ids["orders"])
    cluster.topic_ids["orders"] = bytes(15) + b"\x09"
    wanted = OffsetRange(ORDERS, 0, 3, planned)
    task = cluster.spawn(fetch_once(cluster.engine, ConsumerConfig(), wanted, 0, Source("")))

    cluster.pass_time(60_000, step_ms=1_000)  # Whoever turns the engine hears nothing of it.

    with pytest.raises(TopicRemade):
        task.result()


def test_a_topic_that_is_deleted_under_a_reader_of_a_replica_is_waited_for(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER, FOLLOWER)
    cluster.engine.want_topics("orders")
    cluster.pass_time(1_000)
    source = Source(NEARBY)
    assert source.is_told_of(FOLLOWER, cluster.engine)
    its_id = cluster.topic_ids.pop("orders")
    cluster.engine.refresh_soon()
    cluster.pass_time(1_000)

    task = cluster.spawn(fetch_once(cluster.engine, ConsumerConfig(), OffsetRange(ORDERS, 0, 3), 0, source))
    cluster.pass_time(10_000, step_ms=100)
    assert not task.is_done
    cluster.topic_ids["orders"] = its_id
    cluster.pass_time(10_000, step_ms=100)

    assert task.is_done
    assert source.is_leader


def test_a_topic_that_is_gone_when_its_offsets_are_asked_for_is_told_with_what_to_do(
    cluster: TwoCopies,
) -> None:
    cluster.write(1, LEADER)
    chunks = a_fetcher(cluster, 3).chunks()
    next(chunks)
    del cluster.topic_ids["orders"]
    cluster.engine.refresh_soon()
    cluster.pass_time(1_000)

    with pytest.raises(SparkRefused, match=r"orders-0 \[0, 3\): .*UNKNOWN_TOPIC_OR_PARTITION.*; see that"):
        list(chunks)


def test_a_broker_that_has_not_heard_of_the_new_topic_is_waited_for(cluster: TwoCopies) -> None:
    planned, old = TopicId(cluster.topic_ids["orders"]), bytes(15) + b"\x09"
    cluster.write(3, LEADER)
    cluster.topic_ids["orders"] = old
    fetcher = a_fetcher(cluster, 3, topic_id=planned)
    chunks = fetcher.chunks()
    cluster.script(ApiKey.FETCH, lambda asked: _refused_and_then_told(cluster, asked, planned))

    assert [chunk.end_offset() for chunk in chunks] == [3]


def _refused_and_then_told(cluster: TwoCopies, asked: FetchRequest, topic_id: bytes) -> FetchResponse:
    refused = cluster._fetch(LEADER, asked)
    cluster.topic_ids["orders"] = topic_id
    return refused


def test_a_task_that_stops_early_leaves_no_fetch_behind(cluster: TwoCopies) -> None:
    cluster.write(3, LEADER)
    elsewhere = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    refused = FetchResponse(responses=[FetchableTopicResponse(partitions=[elsewhere])])
    cluster.script(ApiKey.FETCH, lambda asked: cluster._fetch(LEADER, asked), *[refused] * 1000)
    chunks = a_fetcher(cluster, 9).chunks()
    assert isinstance(chunks, Generator)
    next(chunks)

    chunks.close()
    asked = len(cluster.requests(ApiKey.FETCH))
    cluster.pass_time(60_000, step_ms=1_000)

    assert len(cluster.requests(ApiKey.FETCH)) == asked


def test_a_read_does_not_make_a_topic_by_asking_for_it(cluster: TwoCopies) -> None:
    servers = {"kafka.bootstrap.servers": SERVERS}

    read, written = (kafka_settings(servers, is_sink=is_sink).client for is_sink in (False, True))

    for config, makes in ((read, False), (written, True)):
        cluster = TwoCopies(allow_auto_create_topics=config.allow_auto_create_topics)
        cluster.engine.want_topics("gone")
        cluster.pass_time(100)
        asked = [message for _, _, message in cluster.requests(ApiKey.METADATA)]
        assert asked
        assert all(message.allow_auto_topic_creation == makes for message in asked)
