"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers, DescribeLogDirs."""

import pytest

from ottla.broker.runtime import tasks
from ottla.model.errors import ErrorCode
from ottla.model.timestamps import EARLIEST, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from ottla.records.batch import seal
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.apis.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.apis.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker, a_batch
from support.bench.node_bench import a_config

TIMESTAMP = 1_700_000_000_000


def offset_of(
    broker: LedBroker,
    timestamp: int,
    *,
    version: int = 9,
    replica: int = -1,
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])],
    )
    response: ListOffsetsPartitionResponse = broker.ask(request, version).topics[0].partitions[0]
    return response


def a_leader_with_three() -> LedBroker:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b", "c"))
    return broker


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_timestamp"),
    [
        (LATEST, 3, -1),
        (EARLIEST, 0, -1),
        (LATEST_TIERED, -1, -1),
        (MAX_TIMESTAMP, 0, TIMESTAMP),
        (TIMESTAMP, 0, TIMESTAMP),
        (TIMESTAMP + 1, -1, -1),
        (0, 0, TIMESTAMP),
    ],
)
def test_offsets_by_their_name_or_time(timestamp: int, offset: int, found_timestamp: int) -> None:
    answer = offset_of(a_leader_with_three(), timestamp)

    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, found_timestamp)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 9)])
def test_a_name_that_the_version_does_not_know_is_unsupported(timestamp: int, version: int) -> None:
    answer = offset_of(a_leader_with_three(), timestamp, version=version)

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH), (1, 0)]
)
def test_another_leader_epoch_is_fenced(epoch: int, expected: int) -> None:
    assert offset_of(a_leader_with_three(), LATEST, epoch=epoch).error_code == expected


def test_latest_is_not_told_to_clients_before_the_epoch_start_is_committed() -> None:
    """A client that saw a later offset from the old leader must not see it go back."""
    broker = a_leader_with_three()
    broker.log.high_watermark = 1
    broker.lead(isr=(ME, SECOND))

    assert offset_of(broker, LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert offset_of(broker, LATEST, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert offset_of(broker, TIMESTAMP + 1).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert offset_of(broker, EARLIEST).error_code == 0
    assert offset_of(broker, LATEST, replica=SECOND).offset == 3


def test_a_follower_does_not_answer_clients() -> None:
    broker = a_leader_with_three().follow()

    assert offset_of(broker, LATEST).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert offset_of(broker, LATEST, replica=-2).error_code == 0


def test_an_empty_log_has_its_end_as_both_ends_in_the_current_epoch() -> None:
    broker = LedBroker().lead(isr=(ME,))

    for timestamp in (LATEST, EARLIEST):
        answer = offset_of(broker, timestamp)
        assert (answer.offset, answer.leader_epoch) == (0, 1)
    assert offset_of(broker, MAX_TIMESTAMP).offset == -1


def old_style_offsets(
    broker: LedBroker, timestamp: int, *, most: int = 10, replica: int = -1
) -> tuple[int, tuple[int, ...]]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
    request = ListOffsetsRequest(
        replica_id=replica, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    row = broker.ask(request, 0).topics[0].partitions[0]
    return row.error_code, tuple(row.old_style_offsets)


def a_leader_with_three_segments() -> LedBroker:
    """They begin at 0, 2 and 4, were written a second apart, and the last ends at 5 a second ago."""
    broker = LedBroker(a_config(log_segment_bytes=100)).lead(isr=(ME,))
    for values in (("a", "b"), ("c", "d"), ("e",)):
        broker.produce_now(a_batch(*values))
        broker.advance(1_000)
    assert [segment.base_offset for segment in broker.log.segments] == [0, 2, 4]
    return broker


@pytest.mark.parametrize(
    ("ago_ms", "offsets"),
    [(0, (5, 4, 2, 0)), (-1, (5, 4, 2, 0)), (1, (4, 2, 0)), (1_000, (4, 2, 0)), (1_001, (2, 0)), (3_001, ())],
)
def test_version_0_names_segments_by_when_they_were_last_written(
    ago_ms: int, offsets: tuple[int, ...]
) -> None:
    broker = a_leader_with_three_segments()

    assert old_style_offsets(broker, broker.clock.wall_ms() - ago_ms) == (0, offsets)


@pytest.mark.parametrize(
    ("timestamp", "most", "answer"),
    [
        (LATEST, 10, (0, (5, 4, 2, 0))),
        (LATEST, 2, (0, (5, 4))),
        (EARLIEST, 2, (0, (0,))),
        (LATEST, 0, (0, ())),
        (LATEST, -1, (ErrorCode.UNKNOWN_SERVER_ERROR, ())),
        (EARLIEST, -2, (ErrorCode.UNKNOWN_SERVER_ERROR, ())),
    ],
)
def test_version_0_names_no_more_than_it_is_asked_for(
    timestamp: int, most: int, answer: tuple[int, tuple[int, ...]]
) -> None:
    assert old_style_offsets(a_leader_with_three_segments(), timestamp, most=most) == answer


def test_version_0_tells_clients_of_what_is_committed_alone() -> None:
    broker = a_leader_with_three_segments()
    broker.log.high_watermark = 3

    assert old_style_offsets(broker, LATEST) == (0, (3, 2, 0))
    assert old_style_offsets(broker, broker.clock.wall_ms(), most=1) == (0, (3,))
    assert old_style_offsets(broker, LATEST, replica=SECOND) == (0, (5, 4, 2, 0))


def test_version_0_of_an_empty_log_names_its_one_end() -> None:
    broker = LedBroker().lead(isr=(ME,))

    assert old_style_offsets(broker, LATEST) == (0, (0,))
    assert old_style_offsets(broker, broker.clock.wall_ms()) == (0, (0,))


def test_version_0_answers_a_partition_twice_that_is_asked_twice() -> None:
    twice = [ListOffsetsPartition(partition_index=0, timestamp=LATEST, max_num_offsets=1)] * 2
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=twice)])

    rows = a_leader_with_three().ask(request, 0).topics[0].partitions

    assert [tuple(row.old_style_offsets) for row in rows] == [(3,), (3,)]


def with_a_header_key_that_is_no_text() -> bytearray:
    batch = build_batch([Record(b"k", b"v", (("name", b"x"),), TIMESTAMP)])
    batch[batch.index(b"name")] = 0xFF
    seal(batch, 0, len(batch))
    return batch


def with_a_record_that_makes_no_sense() -> bytearray:
    """The third of eight; each is a millisecond later than the one before."""
    batch = build_batch([Record(b"key%d" % at, b"v", (), TIMESTAMP + at) for at in range(8)])
    batch[batch.index(b"key2") - 1] = 0x7E
    seal(batch, 0, len(batch))
    return batch


@pytest.mark.parametrize(
    ("batch", "timestamp", "offset"),
    [
        (with_a_header_key_that_is_no_text(), 5, 0),
        (with_a_header_key_that_is_no_text(), MAX_TIMESTAMP, 0),
        (with_a_record_that_makes_no_sense(), TIMESTAMP + 5, 5),
        (with_a_record_that_makes_no_sense(), MAX_TIMESTAMP, 7),
    ],
)
def test_what_a_producer_writes_is_no_failure_of_the_disk(
    batch: bytearray, timestamp: int, offset: int
) -> None:
    broker = LedBroker().lead(isr=(ME,))
    assert broker.produce_now(batch).error_code == 0

    answer = offset_of(broker, timestamp)

    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, TIMESTAMP + offset)
    assert broker.exit is None
    assert broker.produce_now(a_batch("later")).error_code == 0


def test_largest_timestamp_is_told_though_its_record_was_deleted() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.node.partitions._context.live = frozenset({ME})
    broker.produce_now(build_batch([Record(b"k", b"v", timestamp=TIMESTAMP + 9)]))
    broker.produce_now(a_batch("later"))
    assert deleted(broker, delete(broker, 1)) == (0, 1)

    answer = offset_of(broker, MAX_TIMESTAMP)

    assert (answer.offset, answer.timestamp) == (0, TIMESTAMP + 9)


def asked_for(broker: LedBroker, timestamp: int, connection: int) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    topic = ListOffsetsTopic(name=TOPIC, partitions=[asked])
    broker.send(connection, ListOffsetsRequest(replica_id=-1, topics=[topic]), 9)


def answered(broker: LedBroker, connection: int) -> list[tuple[int, int]]:
    answers = broker.take_answers(connection, ListOffsetsResponse, 9)
    rows = [answer.topics[0].partitions[0] for answer in answers]
    return [(row.error_code, row.offset) for row in rows]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> LedBroker:
    """A leader with three records that lets others have their turn as often as it can."""
    leader = a_leader_with_three()
    monkeypatch.setattr(tasks, "SLICE_MS", 0)
    return leader


def test_others_are_served_during_a_long_search(impatient: LedBroker) -> None:
    searching = impatient.connect()
    asked_for(impatient, TIMESTAMP, searching)
    assert answered(impatient, searching) == []

    assert impatient.produce_now(a_batch("meanwhile")).error_code == 0
    assert offset_of(impatient, LATEST).offset == 4
    impatient.advance(1)

    assert answered(impatient, searching) == [(0, 0)]
    assert impatient.node.waiting.deadlines.count() == 0


def test_leader_that_is_deposed_during_a_search_says_so(
    impatient: LedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching = impatient.connect()
    asked_for(impatient, TIMESTAMP, searching)
    monkeypatch.undo()
    impatient.follow()
    impatient.advance(1)

    assert answered(impatient, searching) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_directory_that_fails_during_a_search_is_told(impatient: LedBroker) -> None:
    searching = impatient.connect()
    asked_for(impatient, TIMESTAMP, searching)
    impatient.log.home.directory.failure = "pulled out"
    impatient.advance(1)

    assert answered(impatient, searching) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]


def test_search_of_a_client_that_has_gone_is_given_up(impatient: LedBroker) -> None:
    searching = impatient.connect()
    asked_for(impatient, TIMESTAMP, searching)
    impatient.node.on_client_lost(searching)
    impatient.advance(1)

    assert answered(impatient, searching) == []
    assert impatient.node.waiting.deadlines.count() == 0


def test_client_whose_search_is_not_done_when_the_broker_leaves_has_to_ask_another(
    impatient: LedBroker,
) -> None:
    searching = impatient.connect()
    asked_for(impatient, TIMESTAMP, searching)
    impatient.node.waiting.stop()
    impatient.settle()
    impatient.advance(1)

    assert [each.connection for each in impatient.closed] == [searching]


def test_a_partition_asked_twice_is_refused_twice() -> None:
    broker = a_leader_with_three()
    twice = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)] * 2
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=twice)])

    rows = broker.ask(request, 9).topics[0].partitions

    assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize(
    ("asked", "expected"), [(1, (1, 3)), (2, (2, 3)), (0, (0, 0)), (3, (-1, -1)), (-1, (-1, -1))]
)
def test_where_an_epoch_ended(asked: int, expected: tuple[int, int]) -> None:
    broker = a_leader_with_three()
    broker.lead(isr=(ME,))
    each = OffsetForLeaderPartition(partition=0, leader_epoch=asked, current_leader_epoch=2)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[each])])

    row = broker.ask(request, 4).topics[0].partitions[0]

    assert (row.error_code, row.leader_epoch, row.end_offset) == (0, *expected)


def delete(broker: LedBroker, offset: int, timeout_ms: int = 1_000) -> int:
    row = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=TOPIC, partitions=[row])], timeout_ms=timeout_ms
    )
    connection = broker.connect()
    broker.send(connection, request, 2)
    return connection


def deleted(broker: LedBroker, connection: int) -> tuple[int, int] | None:
    answers = broker.take_answers(connection, DeleteRecordsResponse, 2)
    if not answers:
        return None
    row = answers[0].topics[0].partitions[0]
    return row.error_code, row.low_watermark


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (2, (0, 2)),
        (-1, (0, 3)),
        (4, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
        (-2, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
    ],
)
def test_records_before_an_offset_are_deleted(offset: int, expected: tuple[int, int]) -> None:
    broker = a_leader_with_three()
    broker.node.partitions._context.live = frozenset({ME})

    assert deleted(broker, delete(broker, offset)) == expected


def test_deleting_waits_until_the_live_followers_have_followed() -> None:
    broker = LedBroker(brokers=(ME, SECOND)).lead()
    broker.produce_now(a_batch("a", "b", "c"))
    broker.fetch_now(3, replica=SECOND, log_start_offset=0)
    waiting = delete(broker, 2)
    assert deleted(broker, waiting) is None

    broker.fetch_now(3, replica=SECOND, log_start_offset=2)

    assert deleted(broker, waiting) == (0, 2)


def test_a_follower_too_slow_to_follow_is_reported_with_how_far_it_is() -> None:
    broker = LedBroker(brokers=(ME, SECOND)).lead()
    broker.produce_now(a_batch("a", "b", "c"))
    broker.fetch_now(3, replica=SECOND, log_start_offset=1)
    waiting = delete(broker, 2)

    broker.advance(1_600)

    assert deleted(broker, waiting) == (ErrorCode.REQUEST_TIMED_OUT, 1)


def test_deleting_does_not_wait_for_a_follower_that_has_died() -> None:
    broker = LedBroker(brokers=(ME, SECOND)).lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b", "c"))
    waiting = delete(broker, 2, timeout_ms=60_000)
    assert deleted(broker, waiting) is None

    broker.brokers = (ME,)
    broker.tell_metadata()

    assert deleted(broker, waiting) == (0, 2)


def test_a_topic_that_is_only_compacted_keeps_its_records() -> None:
    broker = LedBroker(a_config(log_cleanup_policy="compact")).lead(isr=(ME,))

    assert deleted(broker, delete(broker, 0)) == (ErrorCode.POLICY_VIOLATION, -1)


def test_producers_are_described() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b", producer_id=4, producer_epoch=2, base_sequence=0))

    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=(0,))])
    [row] = broker.ask(request, 0).topics[0].partitions

    [producer] = row.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (4, 2, 1)
    assert producer.current_txn_start_offset == -1


def test_a_follower_describes_producers_too() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", producer_id=4, producer_epoch=2, base_sequence=0))
    broker.follow()

    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=(0,))])
    [row] = broker.ask(request, 0).topics[0].partitions

    assert (row.error_code, [each.producer_id for each in row.active_producers]) == (0, [4])


def test_log_directories_are_described_with_sizes() -> None:
    broker = a_leader_with_three()

    [directory] = broker.ask(DescribeLogDirsRequest(topics=None), 4).results

    assert directory.log_dir == "/data"
    [topic] = directory.topics
    assert (topic.name, topic.partitions[0].partition_size) == (TOPIC, broker.log.size_bytes)


def test_of_a_partition_named_twice_the_last_offset_counts() -> None:
    broker = a_leader_with_three()
    broker.node.partitions._context.live = frozenset({ME})
    topics = [
        DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        for offset in (3, 1)
    ]

    answer = broker.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1_000), 2)

    assert [(row.error_code, row.low_watermark) for row in answer.topics[0].partitions] == [(0, 1)]
    assert len(answer.topics) == 1
    assert offset_of(broker, EARLIEST).offset == 1
