"""Whom the consumer asks, and what it makes of a log that is not the one it read: replicas, epochs, cuts."""

from typing import Any

import pytest

from ottla.client.errors import LogTruncated
from ottla.client.fetching.assigned import Assigned
from ottla.client.fetching.decoding import Position
from ottla.model.errors import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import SILENCE, FakeCluster
from support.client.fetching import ORDERS_0, a_cluster, a_consumer, fill, taken


def answer(**row: Any) -> Any:
    """An answer to Fetch that says this of partition 0."""

    def respond(request: FetchRequest) -> FetchResponse:
        data = PartitionData(partition_index=0, **row)
        topic = FetchableTopicResponse(
            topic=request.topics[0].topic, topic_id=request.topics[0].topic_id, partitions=[data]
        )
        return FetchResponse(responses=[topic])

    return respond


def asked(cluster: FakeCluster) -> list[int]:
    return [broker for broker, _, _ in cluster.requests(ApiKey.FETCH)]


def last_asked(cluster: FakeCluster, number: int = -1) -> tuple[int, int, int]:
    """Broker, offset and epoch of the last fetch."""
    broker, _, request = cluster.requests(ApiKey.FETCH)[number]
    (row,) = request.topics[0].partitions
    return broker, row.fetch_offset, row.last_fetched_epoch


def some_records(*values: bytes) -> bytes:
    return bytes(build_batch([Record(None, value, (), 5) for value in values]))


# Replicas that are nearer


def test_a_replica_that_the_leader_prefers_is_asked() -> None:
    cluster = a_cluster()
    near = answer(records=some_records(b"near"))
    cluster.script(ApiKey.FETCH, answer(preferred_read_replica=2), near, SILENCE)
    consumer = a_consumer(cluster, {ORDERS_0: 0}, client_rack="here")

    assert taken(cluster, consumer) == [b"near"]
    assert asked(cluster) == [1, 2, 2]


def test_the_preference_holds_for_a_time_and_while_the_address_is_known() -> None:
    state = Assigned(ORDERS_0)
    state.prefer(2, until_ms=100)

    assert state.source(1, {1, 2}, now_ms=99) == 2
    assert state.source(1, {1, 2}, now_ms=100) == 1
    assert state.source(1, {1}, now_ms=99) == 1


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_after_an_error_of_the_preferred_replica_the_leader_is_asked(code: int) -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"], [b"b"])
    cluster.script(ApiKey.FETCH, answer(preferred_read_replica=2), answer(error_code=code))
    consumer = a_consumer(cluster, {ORDERS_0: 1}, auto_offset_reset="earliest")

    assert taken(cluster, consumer) == [b"b"]
    assert asked(cluster)[:3] == [1, 2, 1]


def test_a_preferred_replica_of_unknown_address_is_not_asked_for_in_a_hurry() -> None:
    cluster = a_cluster()
    cluster.script(ApiKey.FETCH, *[answer(preferred_read_replica=9)] * 1_000)
    a_consumer(cluster, {ORDERS_0: 0})

    cluster.pass_time(1_000)

    assert 2 < len(asked(cluster)) < 20


# Logs that were cut


def a_reader_of_epoch_5(**settings: Any) -> tuple[FakeCluster, Any]:
    """It has read ten records of epoch 5; now the partition has another leader, of epoch 6."""
    cluster = a_cluster()
    cluster.logs[ORDERS_0].leader_epoch = 5
    fill(cluster, ORDERS_0, [b"x"] * 10)
    consumer = a_consumer(cluster, {ORDERS_0: 0}, **settings)
    taken(cluster, consumer)
    cluster.move_leader(ORDERS_0, 2)
    cluster.kill(1)
    return cluster, consumer


def test_the_epoch_of_the_last_batch_is_told_with_the_next_fetch() -> None:
    cluster, consumer = a_reader_of_epoch_5()
    fill(cluster, ORDERS_0, [b"y"])

    assert taken(cluster, consumer) == [b"y"]
    assert last_asked(cluster, -2) == (2, 10, 5)
    assert consumer.positions() == {ORDERS_0: Position(11, 6)}


def test_a_log_that_was_cut_is_read_on_from_the_cut() -> None:
    cluster, consumer = a_reader_of_epoch_5()
    cluster.script(ApiKey.FETCH, answer(diverging_epoch=EpochEndOffset(epoch=4, end_offset=8)), SILENCE)

    cluster.run_until(lambda: consumer.position(ORDERS_0) == 8)
    cluster.pass_time(100)

    assert last_asked(cluster) == (2, 8, 4)


def test_without_a_reset_a_cut_is_told() -> None:
    cluster, consumer = a_reader_of_epoch_5(auto_offset_reset="none")
    cluster.script(ApiKey.FETCH, answer(diverging_epoch=EpochEndOffset(epoch=4, end_offset=8)))

    with pytest.raises(LogTruncated, match="orders-0: read up to 10, but the log was cut at 8"):
        taken(cluster, consumer)
    assert consumer.position(ORDERS_0) == 10


def test_a_log_that_parted_behind_the_reader_is_read_on_where_the_reader_is() -> None:
    cluster, _ = a_reader_of_epoch_5()
    cluster.script(ApiKey.FETCH, answer(diverging_epoch=EpochEndOffset(epoch=4, end_offset=20)), SILENCE)

    cluster.run_until(lambda: len(cluster.scripted[ApiKey.FETCH]) == 0)

    assert last_asked(cluster) == (2, 10, 4)


def test_a_broker_that_knows_no_last_fetched_epoch_is_asked_without() -> None:
    cluster = a_cluster()
    cluster.versions[ApiKey.FETCH] = (0, 11)
    fill(cluster, ORDERS_0, [b"a"])
    consumer = a_consumer(cluster, {ORDERS_0: 0})
    assert taken(cluster, consumer) == [b"a"]

    fill(cluster, ORDERS_0, [b"b"])
    cluster.pass_time(40_000, step_ms=500)

    assert taken(cluster, consumer) == [b"b"]


# Chunks that wait for their reader


def test_what_was_fetched_is_handed_out_before_a_position_behind_it_is_reset() -> None:
    cluster = a_cluster()
    out_of_range = answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    cluster.script(ApiKey.FETCH, answer(records=some_records(b"a", b"b")), *[out_of_range] * 3)
    consumer = a_consumer(cluster, {ORDERS_0: 0}, auto_offset_reset="latest")
    cluster.pass_time(200)
    assert len(cluster.requests(ApiKey.FETCH)) > 1

    assert taken(cluster, consumer) == [b"a", b"b"]


def test_a_reader_that_takes_what_is_here_gets_what_comes_next() -> None:
    cluster = a_cluster()
    values = [b"%d" % number for number in range(8)]
    fill(cluster, ORDERS_0, *[[value] for value in values])

    def one_batch(request: FetchRequest) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        return answer(records=bytes(cluster.logs[ORDERS_0].data[offset]))(request)

    cluster.script(ApiKey.FETCH, *[one_batch] * len(values))
    consumer = a_consumer(cluster, {ORDERS_0: 0})

    got: list[bytes | None] = []
    while len(got) < len(values):
        got += taken(cluster, consumer)
    assert got == values
