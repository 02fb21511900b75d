"""The consumer's core: positions, moved leaders, aborted transactions, and errors that matter."""

from typing import Any

import pytest

from ottla.client.errors import BrokerError, CorruptBatch, OffsetOutOfRange, TimedOut
from ottla.client.fetching.decoding import Chunk, ChunkReader, Position
from ottla.client.fetching.offsets import FoundOffset, list_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.batch import stamp
from ottla.records.builder import build_batch
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.wire.apis.fetch import FetchResponse
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP
from support.client.fetching import ORDERS_0, ORDERS_1, a_cluster, a_consumer, fill, taken


def test_records_come_from_the_position_on() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a", b"b", b"c"], [b"d"])
    consumer = a_consumer(cluster, {ORDERS_0: 1})

    assert taken(cluster, consumer) == [b"b", b"c", b"d"]
    assert consumer.position(ORDERS_0) == 4
    assert consumer.high_watermark(ORDERS_0) == 4


def test_both_ends_of_the_log_are_positions() -> None:
    cluster = a_cluster([1, 2])
    fill(cluster, ORDERS_0, [b"a"])
    fill(cluster, ORDERS_1, [b"b"])
    consumer = a_consumer(cluster, {ORDERS_0: EARLIEST, ORDERS_1: LATEST})

    assert taken(cluster, consumer) == [b"a"]
    fill(cluster, ORDERS_1, [b"c"])
    cluster.pass_time(40_000, step_ms=500)

    assert taken(cluster, consumer) == [b"c"]


def test_at_most_so_many_records_are_taken_and_the_rest_stays() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a", b"b", b"c"])
    consumer = a_consumer(cluster, {ORDERS_0: 0})

    assert taken(cluster, consumer, 2) == [b"a", b"b"]
    assert consumer.position(ORDERS_0) == 2
    assert taken(cluster, consumer, 2) == [b"c"]


def test_every_partition_has_its_turn() -> None:
    cluster = a_cluster([1, 1])
    fill(cluster, ORDERS_0, [b"a"] * 10)
    fill(cluster, ORDERS_1, [b"b"] * 10)
    consumer = a_consumer(cluster, {ORDERS_0: 0, ORDERS_1: 0})

    assert {*taken(cluster, consumer, 5), *taken(cluster, consumer, 5)} == {b"a", b"b"}


def test_a_leader_that_moved_is_followed() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    consumer = a_consumer(cluster, {ORDERS_0: 0})
    assert taken(cluster, consumer) == [b"a"]
    cluster.kill(1)
    cluster.move_leader(ORDERS_0, 2)
    fill(cluster, ORDERS_0, [b"b"])

    assert taken(cluster, consumer) == [b"b"]


def test_a_broker_that_hangs_up_is_asked_again() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    cluster.script(ApiKey.FETCH, HANG_UP, FetchResponse(error_code=ErrorCode.UNKNOWN_TOPIC_ID))

    assert taken(cluster, a_consumer(cluster, {ORDERS_0: 0})) == [b"a"]


def test_seeking_drops_what_was_fetched_and_what_is_on_its_way() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"], [b"b"], [b"c"])
    consumer = a_consumer(cluster, {ORDERS_0: 0})
    consumer.pause([ORDERS_0])
    cluster.run(list_offsets(cluster.engine, {ORDERS_0: LATEST}))  # The connection stands.
    cluster.is_holding = True
    consumer.pause([ORDERS_0], is_paused=False)
    cluster.pass_time(50)
    assert len(cluster.requests(ApiKey.FETCH)) == 1

    consumer.seek(ORDERS_0, 2)
    cluster.release()

    assert taken(cluster, consumer) == [b"c"]


def test_what_was_asked_for_before_going_back_leaves_no_gap() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"], [b"b"])
    consumer = a_consumer(cluster, {ORDERS_0: 1})
    consumer.pause([ORDERS_0])
    cluster.run(list_offsets(cluster.engine, {ORDERS_0: LATEST}))  # The connection stands.
    cluster.is_holding = True
    consumer.pause([ORDERS_0], is_paused=False)
    cluster.pass_time(50)
    assert len(cluster.requests(ApiKey.FETCH)) == 1
    consumer.seek(ORDERS_0, 0)
    cluster.release()

    assert taken(cluster, consumer) == [b"a", b"b"]


def test_what_can_be_had_at_once_does_not_wait_behind_a_fetch_of_what_is_not_there_yet() -> None:
    cluster = a_cluster([1, 1])
    fill(cluster, ORDERS_0, [b"a", b"b"])
    consumer = a_consumer(cluster, {ORDERS_0: 2, ORDERS_1: 0})
    cluster.pass_time(100)
    assert len(cluster.requests(ApiKey.FETCH)) == 1, "it waits at the broker"
    now_ms = cluster.now_ms

    consumer.seek(ORDERS_0, 0)
    cluster.settle()

    assert [record.value for record in consumer.take(10)[ORDERS_0]] == [b"a", b"b"]
    assert cluster.now_ms == now_ms


def test_a_paused_partition_gives_nothing_until_it_is_resumed() -> None:
    cluster = a_cluster([1, 1])
    fill(cluster, ORDERS_0, [b"a"])
    fill(cluster, ORDERS_1, [b"b"])
    consumer = a_consumer(cluster, {ORDERS_0: 0, ORDERS_1: 0})
    consumer.pause([ORDERS_0])

    assert taken(cluster, consumer) == [b"b"]
    consumer.pause([ORDERS_0], is_paused=False)
    assert taken(cluster, consumer) == [b"a"]


@pytest.mark.parametrize(("reset", "values"), [("earliest", [b"b", b"c"]), ("latest", [b"later"])])
def test_a_position_outside_the_log_is_reset(reset: Any, values: list[bytes]) -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"], [b"b", b"c"])
    del cluster.logs[ORDERS_0].data[0]
    cluster.logs[ORDERS_0].start_offset = 1
    consumer = a_consumer(cluster, {ORDERS_0: 0}, auto_offset_reset=reset)
    cluster.pass_time(500)
    if reset == "latest":
        fill(cluster, ORDERS_0, [b"later"])
        cluster.pass_time(40_000, step_ms=500)

    assert taken(cluster, consumer) == values


def test_a_replaced_leader_that_lacks_the_offset_is_not_believed() -> None:
    """It does not know of its successor, and the metadata are as old as it is."""
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    consumer = a_consumer(cluster, {ORDERS_0: Position(2, leader_epoch=1)})
    cluster.pass_time(1_000)
    assert len(cluster.requests(ApiKey.FETCH)) > 1
    assert consumer.position(ORDERS_0) == 2

    cluster.move_leader(ORDERS_0, 2)
    fill(cluster, ORDERS_0, [b"b", b"c"])

    assert taken(cluster, consumer) == [b"c"]


def test_an_epoch_that_never_comes_belonged_to_a_deleted_topic_and_the_position_is_reset() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    consumer = a_consumer(cluster, {ORDERS_0: Position(7, leader_epoch=9)}, auto_offset_reset="earliest")

    assert taken(cluster, consumer) == [b"a"]


def test_without_a_reset_the_caller_hears_of_it() -> None:
    cluster = a_cluster()
    consumer = a_consumer(cluster, {ORDERS_0: 99}, auto_offset_reset="none")

    with pytest.raises(OffsetOutOfRange, match="orders-0: offset 99"):
        taken(cluster, consumer)


def test_a_final_error_is_raised_and_the_position_kept() -> None:
    cluster = a_cluster()
    cluster.script(ApiKey.FETCH, FetchResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    consumer = a_consumer(cluster, {ORDERS_0: 3})

    with pytest.raises(BrokerError):
        taken(cluster, consumer)

    assert consumer.position(ORDERS_0) == 3


def test_a_corrupt_batch_is_raised() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    cluster.logs[ORDERS_0].data[0][-1] ^= 1

    with pytest.raises(CorruptBatch, match="CRC"):
        taken(cluster, a_consumer(cluster, {ORDERS_0: 0}))


def test_records_before_a_corrupt_batch_are_handed_out_and_the_position_stays_there() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a", b"b"], [b"broken"], [b"c"])
    cluster.logs[ORDERS_0].data[1][-1] ^= 1
    consumer = a_consumer(cluster, {ORDERS_0: 0})

    assert taken(cluster, consumer) == [b"a", b"b"]
    for _ in range(2):
        with pytest.raises(CorruptBatch, match="at 2 has a wrong CRC"):
            taken(cluster, consumer)
        assert consumer.position(ORDERS_0) == 2

    consumer.seek(ORDERS_0, 3)
    assert taken(cluster, consumer) == [b"c"]


def test_an_error_of_one_partition_costs_no_records_of_another() -> None:
    cluster = a_cluster([1, 1])
    fill(cluster, ORDERS_0, [b"a"])
    fill(cluster, ORDERS_1, [b"broken"])
    cluster.logs[ORDERS_1].data[0][-1] ^= 1
    consumer = a_consumer(cluster, {ORDERS_0: 0, ORDERS_1: 0})

    assert taken(cluster, consumer) == [b"a"]
    fill(cluster, ORDERS_0, [b"b"])
    with pytest.raises(CorruptBatch, match="orders-1"):
        taken(cluster, consumer)
    assert consumer.position(ORDERS_0) == 1


def test_a_partition_without_a_leader_holds_up_no_other_and_is_read_when_it_has_one() -> None:
    cluster = a_cluster([1, -1])
    fill(cluster, ORDERS_0, [b"a"])
    fill(cluster, ORDERS_1, [b"b"])
    consumer = a_consumer(cluster, {ORDERS_0: EARLIEST, ORDERS_1: EARLIEST})

    assert taken(cluster, consumer) == [b"a"]
    cluster.pass_time(90_000, step_ms=500)
    assert not consumer.has_data
    cluster.move_leader(ORDERS_1, 2)
    cluster.run_until(lambda: consumer.has_data)

    assert taken(cluster, consumer) == [b"b"]


def test_a_position_that_may_not_be_asked_for_is_told_and_asked_for_again() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    cluster.script(ApiKey.LIST_OFFSETS, no_offset(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    consumer = a_consumer(cluster, {ORDERS_0: EARLIEST})

    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        taken(cluster, consumer)
    assert taken(cluster, consumer) == [b"a"]


def test_a_position_is_asked_for_again_after_a_broker_hung_up() -> None:
    cluster = a_cluster()
    fill(cluster, ORDERS_0, [b"a"])
    cluster.script(ApiKey.LIST_OFFSETS, HANG_UP)

    assert taken(cluster, a_consumer(cluster, {ORDERS_0: EARLIEST})) == [b"a"]


def no_offset(code: int) -> ListOffsetsResponse:
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=code)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[row])])


def test_topics_without_an_id_are_fetched_by_name() -> None:
    cluster = a_cluster()
    cluster.topic_ids["orders"] = bytes(16)
    fill(cluster, ORDERS_0, [b"a"])

    assert taken(cluster, a_consumer(cluster, {ORDERS_0: 0})) == [b"a"]
    assert {version for _, version, _ in cluster.requests(ApiKey.FETCH)} == {12}


def test_offsets_are_found_even_while_a_leader_moves() -> None:
    cluster = a_cluster([1, 2])
    fill(cluster, ORDERS_1, [b"a", b"b"])
    cluster.run(list_offsets(cluster.engine, {ORDERS_0: EARLIEST}))
    cluster.move_leader(ORDERS_1, 1)

    found = cluster.run(list_offsets(cluster.engine, {ORDERS_0: LATEST, ORDERS_1: LATEST}))

    assert found == {ORDERS_0: FoundOffset(0, -1, -1), ORDERS_1: FoundOffset(2, -1, -1)}


def test_offsets_of_a_partition_that_is_not_there_end_with_the_timeout() -> None:
    cluster = a_cluster()

    with pytest.raises(TimedOut, match="UNKNOWN_TOPIC_OR_PARTITION: orders-7"):
        cluster.run(list_offsets(cluster.engine, {TopicPartition("orders", 7): LATEST}, timeout_ms=2_000))


def transactional(offset: int, producer_id: int, *values: bytes) -> bytes:
    batch = build_batch(
        [Record(None, value, (), 5) for value in values],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    stamp(batch, 0, offset, 0)
    return bytes(batch)


def marker(offset: int, producer_id: int, is_commit: bool) -> bytes:
    batch = build_end_marker(
        producer_id=producer_id,
        producer_epoch=0,
        is_commit=is_commit,
        coordinator_epoch=0,
        timestamp_ms=5,
        base_offset=offset,
    )
    return bytes(batch)


def read(data: bytes, aborted: tuple[tuple[int, int], ...], skips_aborted: bool) -> list[bytes | None]:
    chunk = Chunk(ORDERS_0, 0, data, 100, 100, 0, aborted)
    reader = ChunkReader(chunk, skips_aborted=skips_aborted, checks_crcs=True)
    values = [record.value for record in reader.take(100)]
    assert reader.take(100) == []
    assert reader.next_offset == chunk.end_offset()
    return values


def test_aborted_transactions_are_left_out_but_not_what_the_producer_did_later() -> None:
    data = (
        transactional(0, 7, b"aborted")
        + transactional(1, 8, b"of another")
        + marker(2, 7, is_commit=False)
        + transactional(3, 7, b"committed later")
        + marker(4, 7, is_commit=True)
        + marker(5, 8, is_commit=True)
    )

    assert read(data, ((7, 0),), skips_aborted=True) == [b"of another", b"committed later"]
    assert read(data, ((7, 0),), skips_aborted=False) == [b"aborted", b"of another", b"committed later"]


def test_a_batch_cut_short_at_the_end_is_not_read() -> None:
    whole = bytes(build_batch([Record(None, b"a", (), 5)]))

    assert read(whole + whole[:40], (), skips_aborted=False) == [b"a"]
