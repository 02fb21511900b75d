"""Fetch on a leader or follower: what is readable, what is refused, who is woken."""

import msgspec
import pytest

from ottla.broker.outputs import Output, RunInThread
from ottla.config.areas import BrokerConfig
from ottla.model.errors import ErrorCode
from ottla.records.compression import Codec
from ottla.znodes import paths
from ottla.zookeeper.ops import Multi, SessionSuspended
from support.bench.led_broker import ME, SECOND, THIRD, LedBroker, a_batch, headers
from support.bench.node_bench import a_config


def a_leader_with(*batches: tuple[str, ...], isr: tuple[int, ...] = (ME,)) -> LedBroker:
    broker = LedBroker().lead(isr=isr)
    for values in batches:
        broker.produce_now(a_batch(*values))
    return broker


def test_a_consumer_reads_whole_batches_with_the_logs_offsets() -> None:
    broker = a_leader_with(("a", "b"), ("c",))

    data = broker.fetch_now(0)

    assert [(each.base_offset, each.record_count) for each in headers(data)] == [(0, 2), (2, 1)]
    assert (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset) == (
        0,
        3,
        3,
        0,
    )
    assert data.aborted_transactions is None


@pytest.mark.parametrize(
    ("version", "code"), [(4, 76), (9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, 0), (17, 0)]
)
def test_topic_in_zstd_is_refused_to_readers_too_old_to_know_it(version: int, code: int) -> None:
    broker = LedBroker(a_config(compression_type="zstd")).lead(isr=(ME,))
    broker.produce_now(a_batch("a"))

    data = broker.fetch_now(0, version=version)

    assert (data.error_code, len(headers(data))) == (code, 0 if code else 1)
    if code:
        assert (data.high_watermark, data.aborted_transactions) == (-1, [])


def test_old_readers_are_refused_by_the_topics_setting_and_not_for_a_producers_choice() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", codec=Codec.ZSTD))

    assert broker.fetch_now(0, version=9).error_code == 0


def test_a_consumer_sees_nothing_above_the_high_watermark() -> None:
    broker = a_leader_with(("a",), isr=(ME, SECOND))

    data = broker.fetch_now(0)

    assert (data.error_code, data.high_watermark) == (0, 0)
    assert headers(data) == []


def test_a_follower_reads_to_the_end_of_the_log() -> None:
    broker = a_leader_with(("a",), isr=(ME, SECOND))

    assert len(headers(broker.fetch_now(0, replica=SECOND))) == 1


def test_a_parked_consumer_is_woken_by_the_high_watermark() -> None:
    broker = a_leader_with(("a",), isr=(ME, SECOND))
    consumer = broker.fetch(0, max_wait_ms=5_000)
    assert broker.fetched(consumer) is None

    broker.fetch_now(1, replica=SECOND)

    answer = broker.fetched(consumer)
    assert answer is not None
    assert len(headers(answer.responses[0].partitions[0])) == 1


def test_a_parked_follower_is_woken_by_an_append() -> None:
    broker = a_leader_with(isr=(ME, SECOND))
    follower = broker.fetch(0, replica=SECOND, max_wait_ms=500)

    broker.produce_now(a_batch("a"))

    answer = broker.fetched(follower)
    assert answer is not None
    assert len(headers(answer.responses[0].partitions[0])) == 1


def test_producers_hear_before_consumers_and_followers_before_consumers() -> None:
    broker = a_leader_with(isr=(ME, SECOND))
    consumer = broker.fetch(0, max_wait_ms=500)
    producer = broker.produce(a_batch("a"), acks=-1)
    broker.written.clear()

    follower = broker.fetch(1, replica=SECOND, max_wait_ms=0)

    assert [each.connection for each in broker.written] == [producer, follower, consumer]


def test_a_parked_fetch_answers_when_its_time_is_up() -> None:
    broker = a_leader_with(("a",))
    consumer = broker.fetch(1, max_wait_ms=500)

    broker.advance(480)
    assert broker.fetched(consumer) is None
    broker.advance(80)

    answer = broker.fetched(consumer)
    assert answer is not None
    assert answer.responses[0].partitions[0].error_code == 0


def test_parked_requests_leave_no_timers_behind() -> None:
    broker = a_leader_with()
    for at in range(100):
        broker.fetch(at, max_wait_ms=500)
        broker.produce_now(a_batch("x"))

    assert len(broker.node.timers._heap) < 20


def test_a_parked_fetch_waits_for_its_minimum() -> None:
    broker = a_leader_with()
    consumer = broker.fetch(0, max_wait_ms=500, min_bytes=250)

    for _ in range(2):
        broker.produce_now(a_batch("a"))
        assert broker.fetched(consumer) is None
    for _ in range(3):
        broker.produce_now(a_batch("a"))

    assert broker.fetched(consumer) is not None


def test_a_reader_whose_limit_cuts_a_batch_does_not_wait_for_more() -> None:
    """The rest of the batch counts, as in Kafka, though only whole ones are sent."""
    broker = a_leader_with(("a",), ("b",), ("c",))
    size = headers(broker.fetch_now(0))[0].size
    limit = size + 10

    data = broker.fetch_now(0, max_wait_ms=500, min_bytes=limit, partition_max_bytes=limit)

    assert [each.base_offset for each in headers(data)] == [0]


def test_a_reader_whose_limit_is_below_its_minimum_waits() -> None:
    broker = a_leader_with(("a",), ("b",), ("c",))
    size = headers(broker.fetch_now(0))[0].size

    consumer = broker.fetch(0, max_wait_ms=500, min_bytes=2 * size, partition_max_bytes=size + 10)

    assert broker.fetched(consumer) is None


def test_a_reader_in_an_old_segment_does_not_wait_for_its_minimum() -> None:
    broker = LedBroker(a_config(log_segment_bytes=200)).lead(isr=(ME,))
    for value in "abc":
        broker.produce_now(a_batch(value * 100))

    first = broker.fetch_now(0, max_wait_ms=500, min_bytes=5_000)
    assert [each.base_offset for each in headers(first)] == [0]
    last = broker.fetch(2, max_wait_ms=500, min_bytes=5_000)
    assert broker.fetched(last) is None


def test_the_first_batch_is_given_whole_however_small_the_limits() -> None:
    broker = a_leader_with(("a" * 500,), ("b" * 500,))

    data = broker.fetch_now(0, partition_max_bytes=10, max_bytes=10)

    assert [each.base_offset for each in headers(data)] == [0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica": 9, "epoch": -1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"last_fetched_epoch": 4}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_fetches_that_are_refused(settings: dict[str, int], expected: ErrorCode) -> None:
    """KIP-320: a reader of another epoch must not get this one's records."""
    broker = a_leader_with(("a",))

    data = broker.fetch_now(0, **settings)

    assert data.error_code == expected
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)
    assert data.records == b""


@pytest.mark.parametrize("offset", [-1, 2])
def test_an_offset_outside_the_log_is_out_of_range(offset: int) -> None:
    assert a_leader_with(("a",)).fetch_now(offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_was_frozen_or_cut_off_sends_readers_of_more_to_the_new_one() -> None:
    """Out of range would have them begin anew, though others lead by now and have what they ask for."""
    frozen, cut_off = a_leader_with(("a",)), a_leader_with(("a",))
    frozen.clock.now_ms += 10_000
    cut_off.node.on_zk_session(SessionSuspended("nothing was heard"))

    for broker in (frozen, cut_off):
        assert broker.fetch_now(2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert broker.fetch_now(-1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_whose_session_ended_sends_readers_of_more_away_until_it_is_told_what_to_lead() -> None:
    """ZooKeeper grants a session before a controller that is cut off can say who leads since the last one."""
    broker = a_leader_with(("a",))
    broker.expire_session(0x77)

    untold = broker.fetch_now(2)
    broker.tell_metadata()
    still_untold = broker.fetch_now(2)
    broker.lead()

    assert untold.error_code == still_untold.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.fetch_now(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_is_told_what_to_lead_before_it_hears_of_its_registration_knows_it_then() -> None:
    """The answer to the registration may be late, or lost; the controller has seen the znode."""
    broker = a_leader_with(("a",))
    broker.zk_is_held = True
    broker.expire_session(0x77)
    while not isinstance(broker.held[0].operation, Multi):
        broker.answer(broker.held.pop(0))
        broker.settle()
    registration = broker.held.pop(0)
    result, _ = broker.tree.apply(registration.operation, broker.session, 1)
    broker.zk_is_held = False

    broker.lead(broker_epoch=broker.tree.nodes[paths.broker(ME)].stat().czxid)
    broker.node.on_zk_result(registration.token, result)
    broker.settle()

    assert broker.fetch_now(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_offset_between_high_watermark_and_end_is_empty_and_no_error() -> None:
    broker = a_leader_with(("a",), ("b",), isr=(ME, SECOND))

    assert broker.fetch_now(1).error_code == 0


def test_a_wrong_tail_is_answered_with_where_it_leaves_the_log() -> None:
    broker = a_leader_with(("a",))
    broker.lead(isr=(ME, SECOND))
    broker.produce_now(a_batch("b"))

    data = broker.fetch_now(2, replica=SECOND, last_fetched_epoch=1)

    assert data.error_code == 0
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (1, 1)
    assert data.records == b""


def test_a_diverging_fetch_is_no_acknowledgement() -> None:
    """KAFKA-13141."""
    broker = a_leader_with(("a",))
    broker.lead(isr=(ME, SECOND))
    broker.produce_now(a_batch("b"))

    broker.fetch_now(2, replica=SECOND, last_fetched_epoch=1)

    assert broker.partition.leader.followers[SECOND].end_offset == -1
    assert broker.log.high_watermark == 1


def test_below_the_log_start_a_diverging_epoch_is_still_out_of_range() -> None:
    """KAFKA-12996."""
    broker = a_leader_with(("a",), ("b",))
    broker.lead(isr=(ME,))
    broker.log.raise_log_start_offset(2)

    assert broker.fetch_now(1, last_fetched_epoch=1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_unknown_topic_id_waits_with_the_rest() -> None:
    broker = a_leader_with()
    request = broker.fetch_request(0, max_wait_ms=500)
    request.topics[0].topic_id = bytes(16)
    connection = broker.connect()
    broker.send(connection, request, 17)
    assert broker.fetched(connection) is None

    broker.advance(600)

    answer = broker.fetched(connection)
    assert answer is not None
    data = answer.responses[0].partitions[0]
    assert (data.error_code, data.aborted_transactions) == (ErrorCode.UNKNOWN_TOPIC_ID, [])


def test_a_follower_serves_consumers_up_to_its_own_high_watermark() -> None:
    broker = a_leader_with(("a",))
    broker.follow()

    data = broker.fetch_now(0)

    assert (data.error_code, data.high_watermark) == (0, 1)
    assert len(headers(data)) == 1


def test_a_follower_does_not_serve_followers_and_says_who_leads() -> None:
    broker = a_leader_with(("a",))
    broker.follow(SECOND)

    answer = broker.fetched(broker.fetch(0, replica=THIRD))

    assert answer is not None
    data = answer.responses[0].partitions[0]
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (SECOND, broker.epoch)
    assert [each.node_id for each in answer.node_endpoints] == [SECOND]


def test_a_parked_consumer_hears_at_once_that_the_epoch_changed() -> None:
    broker = a_leader_with(("a",))
    consumer = broker.fetch(1, max_wait_ms=5_000)

    broker.follow()

    answer = broker.fetched(consumer)
    assert answer is not None
    assert answer.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_client_that_has_gone_no_longer_watches_the_partition() -> None:
    broker = a_leader_with(("a",))
    consumer = broker.fetch(1, max_wait_ms=5_000)

    broker.node.on_client_lost(consumer)

    assert broker.partition.watchers == {}
    broker.produce_now(a_batch("b"))
    assert broker.fetched(consumer) is None


class HeldThreads(LedBroker):
    """Work for threads waits until the test lets it be done."""

    def __init__(self, config: BrokerConfig) -> None:
        self.work: list[RunInThread] = []
        self.holds = False
        super().__init__(config)

    def _perform(self, output: Output) -> None:
        if isinstance(output, RunInThread) and self.holds:
            self.work.append(output)
        else:
            super()._perform(output)


def test_old_records_are_brought_into_memory_by_a_thread_before_they_are_read() -> None:
    """The loop does not wait for the disk; and one trip of the thread serves the fetches that follow."""
    broker = HeldThreads(a_config(log_segment_bytes=200))
    broker.lead(isr=(ME,))
    for value in "abcdef":
        broker.produce_now(a_batch(value * 100))
    broker.holds = True

    consumer = broker.fetch(0, max_wait_ms=0, partition_max_bytes=100)
    assert broker.fetched(consumer) is None
    [work] = broker.work
    work.work()
    broker.node.on_work_done(work.token, None)
    broker.settle()

    answer = broker.fetched(consumer)
    assert answer is not None
    assert [each.base_offset for each in headers(answer.responses[0].partitions[0])] == [0]
    assert headers(broker.fetch_now(0))
    assert headers(broker.fetch_now(5)), "the newest segment is in memory anyway"


def test_a_client_that_left_while_its_old_records_were_read_is_forgotten() -> None:
    broker = HeldThreads(a_config(log_segment_bytes=200))
    broker.lead(isr=(ME, SECOND))
    for value in "abc":
        broker.produce_now(a_batch(value * 100))
    consumer = broker.fetch(0, max_wait_ms=5_000)
    broker.holds = True
    broker.fetch(3, replica=SECOND)
    [work] = broker.work

    broker.node.on_client_lost(consumer)
    broker.node.on_work_done(work.token, None)
    broker.settle()

    assert broker.fetched(consumer) is None
    assert not any(entry.reader.replica_id < 0 for entry in broker.partition.watchers)


def a_session_whose_old_records_are_read() -> tuple[HeldThreads, int, int]:
    """A thread is under way for a session's fetch when the next one comes and finds nothing new."""
    broker = HeldThreads(a_config(log_segment_bytes=200))
    broker.lead(isr=(ME,))
    for value in "abc":
        broker.produce_now(a_batch(value * 100))
    opened = broker.fetched(broker.fetch(3, session=(0, 0)))
    assert opened is not None
    broker.holds = True
    first = broker.fetch(0, session=(opened.session_id, 1))
    second = broker.fetch(3, session=(opened.session_id, 2), max_wait_ms=60_000)
    assert (broker.fetched(first), broker.fetched(second)) == (None, None)
    return broker, first, second


@pytest.mark.parametrize("has_left", [False, True])
def test_a_fetch_that_parks_while_another_of_its_session_reads_old_records_is_woken(has_left: bool) -> None:
    broker, first, second = a_session_whose_old_records_are_read()
    if has_left:
        broker.node.on_client_lost(first)
    [work] = broker.work
    broker.node.on_work_done(work.token, None)
    broker.settle()

    broker.produce_now(a_batch("d"))

    answer = broker.fetched(second)
    assert answer is not None
    assert [each.base_offset for each in headers(answer.responses[0].partitions[0])] == [3]


RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def test_a_consumer_is_sent_to_the_in_sync_replica_of_its_rack() -> None:
    broker = LedBroker(a_config(replica_selector_class=RACK_AWARE))
    broker.racks = {ME: "a", SECOND: "b", THIRD: "c"}
    broker.lead()
    broker.produce_now(a_batch("x"))
    for replica in (SECOND, THIRD):
        broker.fetch_now(1, replica=replica)

    data = broker.fetch_now(0, rack="b")

    assert (data.preferred_read_replica, data.records) == (SECOND, b"")


def test_a_replica_outside_the_isr_is_not_offered_to_consumers() -> None:
    """KAFKA-14372."""
    broker = LedBroker(a_config(replica_selector_class=RACK_AWARE))
    broker.racks = {ME: "a", SECOND: "b", THIRD: "c"}
    broker.lead(isr=(ME,))
    broker.produce_now(a_batch("x"))

    data = broker.fetch_now(0, rack="b")

    assert data.preferred_read_replica == -1
    assert len(headers(data)) == 1


def test_the_high_watermark_moves_on_with_the_fetch_of_a_follower_that_parks() -> None:
    broker = a_leader_with(("a",), isr=(ME, SECOND))

    follower = broker.fetch(1, replica=SECOND, max_wait_ms=500)

    assert broker.log.high_watermark == 1
    assert broker.fetched(follower) is None


@pytest.mark.parametrize("version", [4, 12, 17])
def test_of_a_partition_named_twice_the_last_question_counts(version: int) -> None:
    broker = a_leader_with(("a",), ("b",), ("c",))
    request = broker.fetch_request(0)
    (partition,) = request.topics[0].partitions
    request.topics[0].partitions.append(msgspec.structs.replace(partition, fetch_offset=2))
    connection = broker.connect()
    broker.send(connection, request, version)

    answer = broker.fetched(connection, version)

    assert answer is not None
    [data] = answer.responses[0].partitions
    assert [each.base_offset for each in headers(data)] == [2]
