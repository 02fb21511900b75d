"""Produce on a leader: checks, acks, waiting."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.records.batch import read_header
from ottla.records.builder import assemble
from ottla.records.compression import Codec
from ottla.records.record import write_record
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.bench.led_broker import ME, SECOND, THIRD, TOPIC, LedBroker, a_batch
from support.bench.node_bench import a_config


def test_a_lone_leader_answers_acks_all_at_once() -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produce_now(a_batch("a", "b"), acks=-1)

    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 0, 0)
    assert broker.log.high_watermark == 2


def test_acks_one_is_answered_before_the_followers_have_the_records() -> None:
    broker = LedBroker().lead()

    assert broker.produce_now(a_batch("a"), acks=1).error_code == 0
    assert broker.log.high_watermark == 0


def test_acks_all_waits_until_every_in_sync_follower_has_fetched_past_the_records() -> None:
    broker = LedBroker().lead()
    waiting = broker.produce(a_batch("a"), acks=-1)

    broker.fetch_now(1, replica=SECOND)
    assert broker.produced(waiting) is None
    broker.fetch_now(1, replica=THIRD)

    answer = broker.produced(waiting)
    assert answer is not None
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_a_producer_that_waited_too_long_hears_so_with_its_offset() -> None:
    broker = LedBroker().lead()
    waiting = broker.produce(a_batch("a"), acks=-1, timeout_ms=700)

    broker.advance(650)
    assert broker.produced(waiting) is None
    broker.advance(150)

    answer = broker.produced(waiting)
    assert answer is not None
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_the_answer_to_an_expired_request_is_not_sent_twice() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    waiting = broker.produce(a_batch("a"), acks=-1, timeout_ms=100)
    broker.advance(500)
    assert broker.produced(waiting) is not None

    broker.fetch_now(1, replica=SECOND)

    assert broker.log.high_watermark == 1
    assert broker.produced(waiting) is None


def test_a_leader_that_loses_its_role_tells_those_who_wait() -> None:
    broker = LedBroker().lead()
    waiting = broker.produce(a_batch("a"), acks=-1)

    broker.follow()

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_client_that_has_gone_is_forgotten() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    waiting = broker.produce(a_batch("a"), acks=-1)

    broker.node.on_client_lost(waiting)
    broker.fetch_now(1, replica=SECOND)

    assert broker.produced(waiting) is None
    assert broker.log.high_watermark == 1


def test_acks_all_is_refused_while_too_few_are_in_sync_and_nothing_is_written() -> None:
    broker = LedBroker(a_config(min_insync_replicas=2)).lead(isr=(ME,))

    answer = broker.produce_now(a_batch("a"), acks=-1)

    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert broker.log.end_offset == 0


def test_acks_zero_gets_no_answer() -> None:
    broker = LedBroker().lead(isr=(ME,))

    connection = broker.produce(a_batch("a"), acks=0)

    assert broker.produced(connection) is None
    assert broker.closed == []
    assert broker.log.end_offset == 1


def test_acks_zero_to_a_broker_that_does_not_lead_closes_the_connection() -> None:
    """KAFKA-955: otherwise the records vanish without a word."""
    broker = LedBroker().follow()

    connection = broker.produce(a_batch("a"), acks=0)

    assert [each.connection for each in broker.closed] == [connection]


def test_a_follower_says_who_leads() -> None:
    broker = LedBroker().follow(SECOND)
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=a_batch("a"))])
        ],
    )

    response = broker.ask(request, 11)

    result = response.responses[0].partition_responses[0]
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (result.current_leader.leader_id, result.current_leader.leader_epoch) == (SECOND, broker.epoch)
    assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(2, "host2", 9092)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        ({"topic": "unknown"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"version": 2}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_requests_that_are_refused_before_anything_is_appended(
    settings: dict[str, object], expected: ErrorCode
) -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produce_now(a_batch("a"), **settings)

    assert answer.error_code == expected
    assert (answer.base_offset, answer.log_start_offset, answer.error_message) == (-1, -1, None)
    assert broker.log.end_offset == 0


def corrupted(batch: bytearray, position: int, value: int) -> bytearray:
    batch[position] = value
    return batch


def ends_inside_a_number() -> bytearray:
    """Four sound records and one whose parts reach behind the batch."""
    area = bytearray()
    for at in range(4):
        write_record(area, 0, at, b"k", b"v")
    area += bytes([0x8A, 0, 0, 0x80, 0, 0x88, 0])
    return assemble(read_header(a_batch(*"12345")), area, Codec.NONE)


@pytest.mark.parametrize(
    ("batch", "expected", "log_start_offset"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, -1, id="no records at all"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, -1, id="empty"),
        pytest.param(corrupted(a_batch("a"), 16, 3), ErrorCode.CORRUPT_MESSAGE, -1, id="unknown magic"),
        pytest.param(corrupted(a_batch("a"), 16, 1), ErrorCode.INVALID_RECORD, -1, id="old magic"),
        pytest.param(a_batch("a") + a_batch("b"), ErrorCode.INVALID_RECORD, -1, id="two batches"),
        pytest.param(corrupted(a_batch("a"), 65, 77), ErrorCode.CORRUPT_MESSAGE, -1, id="wrong checksum"),
        pytest.param(a_batch("a", base_offset=5), ErrorCode.INVALID_RECORD, 0, id="base offset not 0"),
        pytest.param(a_batch("x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE, -1, id="too large"),
        pytest.param(ends_inside_a_number(), ErrorCode.INVALID_RECORD, 0, id="last record cut short"),
    ],
)
def test_unsound_batches_are_refused(
    batch: bytearray | None, expected: ErrorCode, log_start_offset: int
) -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produce_now(batch)

    assert answer.error_code == expected
    assert answer.log_start_offset == log_start_offset
    assert broker.log.end_offset == 0


def test_zstd_needs_a_new_enough_request() -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produce_now(a_batch("a", codec=Codec.ZSTD), version=6)

    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_internal_topics_are_closed_to_clients() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.node.metadata.topics["__consumer_offsets"] = broker.node.metadata.topics[TOPIC]

    answer = broker.produce_now(a_batch("a"), topic="__consumer_offsets")

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_one_unparsable_batch_spoils_the_whole_request() -> None:
    broker = LedBroker().lead(isr=(ME,))
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name=TOPIC,
                partition_data=[
                    PartitionProduceData(index=0, records=a_batch("good")),
                    PartitionProduceData(index=1, records=corrupted(a_batch("bad"), 16, 9)),
                ],
            )
        ],
    )

    results = broker.ask(request, 11).responses[0].partition_responses

    assert [each.error_code for each in results] == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert all(each.error_message for each in results)
    assert broker.log.end_offset == 0


def test_a_partition_named_twice_is_written_and_answered_once() -> None:
    broker = LedBroker().lead(isr=(ME,))
    twice = [PartitionProduceData(index=0, records=a_batch(value)) for value in ("a", "b")]

    response = broker.ask(
        ProduceRequest(acks=1, topic_data=[TopicProduceData(name=TOPIC, partition_data=twice)]), 11
    )

    assert len(response.responses[0].partition_responses) == 1
    assert broker.log.end_offset == 1


def test_a_batch_sent_again_is_answered_with_its_first_offset() -> None:
    broker = LedBroker().lead(isr=(ME,))
    producer = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    broker.produce_now(a_batch("before"))
    first = broker.produce_now(a_batch("a", "b", **producer), acks=-1)

    again = broker.produce_now(a_batch("a", "b", **producer), acks=-1)

    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert broker.log.end_offset == 3


def test_a_batch_sent_again_is_answered_when_it_is_committed_whatever_waits_behind_it() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    batch = a_batch("a", base_sequence=0, producer_id=5, producer_epoch=0)
    first = broker.produce(bytearray(batch), acks=-1)
    broker.node.on_client_lost(first)
    later = [broker.produce(a_batch(value), acks=-1) for value in "bc"]

    again = broker.produce(bytearray(batch), acks=-1)
    broker.fetch(1, replica=SECOND)

    answer = broker.produced(again)
    assert answer is not None
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert [broker.produced(each) for each in later] == [None, None]
    broker.fetch(3, replica=SECOND)
    assert None not in [broker.produced(each) for each in later]


def test_replies_keep_the_order_of_their_requests() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    connection = broker.produce(a_batch("a"), acks=-1)
    broker.produce(a_batch("b"), acks=1, connection=connection)
    assert broker.written[-1:] == [] or broker.written[-1].connection != connection

    broker.fetch_now(2, replica=SECOND)

    first = broker.produced(connection)
    assert first is not None
    assert first.base_offset == 0


def test_flush_messages_syncs_before_the_producer_hears() -> None:
    broker = LedBroker(a_config(log_flush_interval_messages=1)).lead(isr=(ME,))

    broker.produce_now(a_batch("a"))

    assert broker.log.recovery_point == 1
