"""Following a leader: what is asked, what is appended, what is cut."""

import pytest

from ottla.broker.replicas.losses import UncleanStart
from ottla.model.errors import ErrorCode
from ottla.replication.follower import Phase
from ottla.wire.apis.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.headers import frame_response
from support.bench.led_broker import ME, SECOND, THIRD, TOPIC, TOPIC_ID, LedBroker, a_batch
from support.bench.node_bench import a_config

SESSION = 77


def stamped(batch: bytearray, offset: int, epoch: int) -> bytearray:
    batch[0:8] = offset.to_bytes(8, "big")
    batch[12:16] = epoch.to_bytes(4, "big")
    return batch


def a_follower(**settings: object) -> LedBroker:
    broker = LedBroker(a_config(**settings)).follow()
    broker.connect_links()
    return broker


def asked(broker: LedBroker) -> FetchRequest:
    request = broker.last_request(FetchRequest)[3]
    assert isinstance(request, FetchRequest)
    return request


def answer(
    broker: LedBroker, *, partition: int = 0, session: int = SESSION, error: int = 0, **data: object
) -> None:
    """The leader's answer to the fetch in flight."""
    settings: dict[str, object] = {
        "high_watermark": 0,
        "last_stable_offset": 0,
        "log_start_offset": 0,
        **data,
    }
    row = PartitionData(partition_index=partition, error_code=error, **settings)  # type: ignore[arg-type]
    response = FetchResponse(
        session_id=session, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[row])]
    )
    broker.answer_peer(FetchRequest, response)


def test_the_first_fetch_is_full_and_speaks_as_a_follower() -> None:
    broker = a_follower()

    link, _, version, request = broker.last_request(FetchRequest)

    assert version == 17
    assert broker.links[link].host == "host2"
    assert (request.replica_state.replica_id, request.session_epoch) == (ME, 0)
    assert request.replica_state.replica_epoch == broker.node.identity.broker_epoch
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10_485_760)
    [topic] = request.topics
    assert topic.topic_id == TOPIC_ID
    [each] = topic.partitions
    assert (each.fetch_offset, each.current_leader_epoch, each.last_fetched_epoch) == (0, broker.epoch, -1)
    assert (each.log_start_offset, each.partition_max_bytes) == (0, 1_048_576)


def test_records_are_appended_as_they_came_and_the_next_fetch_follows_at_once() -> None:
    broker = a_follower()

    answer(broker, records=stamped(a_batch("a", "b"), 0, 1), high_watermark=1)

    assert (broker.log.end_offset, broker.log.high_watermark) == (2, 1)
    request = asked(broker)
    assert (request.session_id, request.session_epoch) == (SESSION, 1)
    assert request.topics[0].partitions[0].fetch_offset == 2
    assert request.topics[0].partitions[0].last_fetched_epoch == 1


def test_a_fetch_with_nothing_new_names_no_partition() -> None:
    broker = a_follower()

    answer(broker)

    assert asked(broker).topics == []


def test_the_leaders_log_start_is_followed() -> None:
    broker = a_follower()

    answer(broker, records=stamped(a_batch("a", "b"), 0, 1), high_watermark=2, log_start_offset=1)

    assert broker.log.log_start_offset == 1


def test_a_gap_in_the_offsets_is_accepted() -> None:
    broker = a_follower()

    answer(broker, records=stamped(a_batch("a"), 7, 1))

    assert broker.log.end_offset == 8


def test_a_batch_of_a_later_epoch_than_ours_is_left_for_a_later_fetch() -> None:
    broker = a_follower()
    both = stamped(a_batch("a"), 0, 1) + stamped(a_batch("b"), 1, 9)

    answer(broker, records=both)

    assert broker.log.end_offset == 1


def test_corrupt_records_are_not_appended_and_fetched_again_later() -> None:
    """KAFKA-4384: the fetcher lives on."""
    broker = a_follower()
    broken = stamped(a_batch("a"), 0, 1)
    broken[65] ^= 1
    before = len(broker.peer_requests(FetchRequest))

    answer(broker, records=broken)
    assert broker.log.end_offset == 0
    broker.advance(1_000)

    assert len(broker.peer_requests(FetchRequest)) == before + 1


def test_a_batch_larger_than_our_own_limit_is_replicated_all_the_same() -> None:
    """KAFKA-9617: the leader has accepted it."""
    broker = a_follower(message_max_bytes=100)

    answer(broker, records=stamped(a_batch("x" * 5_000), 0, 1))

    assert broker.log.end_offset == 1


def test_a_diverging_epoch_cuts_the_log_and_moves_no_watermark() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a"))
    broker.lead(isr=(ME,))
    broker.produce_now(a_batch("b", "c"))
    broker.follow(SECOND)
    broker.connect_links()
    request = asked(broker)
    assert request.topics[0].partitions[0].last_fetched_epoch == 2

    answer(broker, diverging_epoch=EpochEndOffset(1, 1), high_watermark=1)

    assert broker.log.end_offset == 1
    again = asked(broker).topics[0].partitions[0]
    assert (again.fetch_offset, again.last_fetched_epoch) == (1, 1)


def test_a_fenced_partition_is_not_fetched_until_the_controller_speaks() -> None:
    broker = a_follower()

    answer(broker, error=ErrorCode.FENCED_LEADER_EPOCH)
    count = len(broker.peer_requests(FetchRequest))
    broker.advance(10_000)
    assert len(broker.peer_requests(FetchRequest)) == count

    broker.follow(THIRD)
    broker.connect_links()
    assert broker.links[broker.last_request(FetchRequest)[0]].host == "host3"


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID])
def test_a_leader_that_is_not_ready_is_asked_again_after_a_pause(error: ErrorCode) -> None:
    broker = a_follower()
    count = len(broker.peer_requests(FetchRequest))

    answer(broker, error=int(error))
    broker.advance(900)
    assert len(broker.peer_requests(FetchRequest)) == count
    broker.advance(200)

    assert len(broker.peer_requests(FetchRequest)) == count + 1
    answer(broker, records=stamped(a_batch("a"), 0, 1))
    assert broker.log.end_offset == 1


def answer_offset(broker: LedBroker, offset: int) -> None:
    broker.connect_links()
    row = ListOffsetsPartitionResponse(partition_index=0, offset=offset, timestamp=-1)
    broker.answer_peer(
        ListOffsetsRequest,
        ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[row])]),
    )


def test_below_the_leaders_start_the_log_begins_anew() -> None:
    """KAFKA-9491: start, end and high watermark together."""
    broker = a_follower()
    answer(broker, records=stamped(a_batch("a"), 0, 1))

    answer(broker, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    answer_offset(broker, 100)
    assert broker.last_request(ListOffsetsRequest)[3].topics[0].partitions[0].timestamp == -2
    answer_offset(broker, 50)
    broker.advance(0)

    log = broker.log
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (50, 50, 50)
    assert asked(broker).topics[0].partitions[0].fetch_offset == 50


def test_a_leader_whose_log_begins_inside_a_batch_can_be_followed_from_nothing() -> None:
    """KAFKA-6975: DeleteRecords moved its start; the whole batch is what it can give."""
    broker = a_follower()
    answer(broker, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    answer_offset(broker, 60)
    answer_offset(broker, 52)
    broker.advance(0)
    assert asked(broker).topics[0].partitions[0].fetch_offset == 52

    batch = stamped(a_batch("a", "b", "c", "d"), 50, 1)
    answer(broker, records=batch, high_watermark=54, log_start_offset=52)

    log = broker.log
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (52, 54, 54)


def test_a_batch_cut_short_at_the_end_is_left_for_the_next_fetch() -> None:
    broker = a_follower()
    both = stamped(a_batch("a"), 0, 1) + stamped(a_batch("b"), 1, 1)

    answer(broker, records=both[:-5])

    assert broker.log.end_offset == 1
    assert asked(broker).topics[0].partitions[0].fetch_offset == 1


def test_ahead_of_an_unclean_leader_the_tail_is_cut() -> None:
    broker = a_follower()
    answer(broker, records=stamped(a_batch("a", "b", "c"), 0, 1))

    answer(broker, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    answer_offset(broker, 2)

    assert broker.log.end_offset == 2


def test_an_answer_that_comes_after_the_role_changed_changes_nothing() -> None:
    """KAFKA-13207."""
    broker = a_follower()
    link, correlation_id, version, _ = broker.last_request(FetchRequest)
    row = PartitionData(partition_index=0, high_watermark=1, records=stamped(a_batch("late"), 0, 1))
    response = FetchResponse(
        session_id=SESSION, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[row])]
    )

    broker.lead(isr=(ME,))
    frame = b"".join(frame_response(response, version, correlation_id))[4:]
    broker.node.on_peer_frame(link, memoryview(bytearray(frame)))
    broker.settle()

    assert broker.log.end_offset == 0


def test_whoever_led_before_is_not_asked_any_more() -> None:
    broker = a_follower()
    before = broker.last_request(FetchRequest)[0]

    broker.follow(THIRD)
    broker.connect_links()
    broker.advance(5_000)

    assert before not in broker.links
    hosts = {
        broker.links[link].host
        for link, _, _, _ in broker.peer_requests(FetchRequest)
        if link in broker.links
    }
    assert hosts == {"host3"}


def test_an_answer_that_comes_after_a_new_epoch_of_the_same_leader_changes_nothing() -> None:
    broker = a_follower()

    broker.follow(SECOND)
    answer(broker, records=stamped(a_batch("late"), 0, 1), high_watermark=1)

    assert broker.log.end_offset == 0
    assert asked(broker).topics[0].partitions[0].current_leader_epoch == broker.epoch


def test_a_lost_connection_is_tried_again_after_the_back_off() -> None:
    broker = a_follower()
    link = broker.last_request(FetchRequest)[0]
    count = len(broker.peer_requests(FetchRequest))

    broker.node.on_peer_lost(link, "reset")
    broker.settle()
    broker.advance(1_200)
    broker.node.on_peer_connected(link)
    broker.settle()

    assert len(broker.peer_requests(FetchRequest)) == count + 1
    assert asked(broker).session_epoch == 0


def test_a_leader_that_forgot_the_session_is_asked_in_full_at_once() -> None:
    broker = a_follower()
    answer(broker)

    broker.answer_peer(
        FetchRequest, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=0)
    )

    request = asked(broker)
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert len(request.topics) == 1


def test_consumers_parked_at_a_follower_are_woken_by_its_high_watermark() -> None:
    broker = a_follower()
    consumer = broker.fetch(0, max_wait_ms=5_000)

    answer(broker, records=stamped(a_batch("a"), 0, 1), high_watermark=1)

    got = broker.fetched(consumer)
    assert got is not None
    assert got.responses[0].partitions[0].high_watermark == 1


def test_a_throttled_follower_that_is_behind_waits() -> None:
    broker = LedBroker()
    broker.node.throttles.follower.limit = 1_000
    broker.follow()
    broker.log.config = broker.node.configs.log_config(TOPIC).__class__(
        follower_replication_throttled_replicas=("*",)
    )
    broker.connect_links()
    count = len(broker.peer_requests(FetchRequest))

    answer(broker, records=stamped(a_batch("x" * 50_000), 0, 1), high_watermark=10)
    assert len(broker.peer_requests(FetchRequest)) == count

    broker.advance(60_000)
    assert len(broker.peer_requests(FetchRequest)) > count


def test_a_throttled_follower_in_sync_is_not_held_back() -> None:
    """KAFKA-7152: a throttle never pushes a replica out of the ISR."""
    broker = LedBroker()
    broker.node.throttles.follower.limit = 1_000
    broker.follow()
    broker.log.config = broker.node.configs.log_config(TOPIC).__class__(
        follower_replication_throttled_replicas=("*",)
    )
    broker.connect_links()
    count = len(broker.peer_requests(FetchRequest))

    answer(broker, records=stamped(a_batch("x" * 50_000), 0, 1), high_watermark=1)

    assert len(broker.peer_requests(FetchRequest)) == count + 1


class NotesUncleanStarts:
    """In place of the log of decisions: keeps what it is told of unclean elections."""

    def __init__(self) -> None:
        self.starts: list[UncleanStart] = []

    def on_unclean_start(self, start: UncleanStart) -> None:
        self.starts.append(start)

    def __getattr__(self, name: str) -> object:
        return lambda *arguments: None


def test_a_slow_follower_elected_uncleanly_says_how_much_it_had_heard_of() -> None:
    broker = a_follower()
    notes = NotesUncleanStarts()
    broker.node.assignment.losses = notes
    answer(broker, high_watermark=9, records=bytes(stamped(a_batch("a", "b"), 0, 1)))

    broker.assign(ME, isr=(ME,), recovering=True)
    broker.assign(ME, isr=(ME,), recovering=True)

    assert [(s.end_offset, s.heard_high_watermark, s.leader_epoch) for s in notes.starts] == [(2, 9, 2)]


def test_a_leader_elected_uncleanly_that_missed_another_does_not_count_on_what_it_wrote_beside_it() -> None:
    """Frozen and replaced, it wrote on when it woke up; its successor has acknowledged others there."""
    broker = LedBroker()
    broker.lead(isr=(ME, SECOND))
    broker.produce(a_batch("a", "b"), acks=1)
    broker.fetch_now(2, replica=SECOND)
    broker.produce(a_batch("c", "d", "e"), acks=1)
    notes = NotesUncleanStarts()
    broker.node.assignment.losses = notes

    broker.assign(ME, isr=(ME, SECOND), epoch=broker.epoch + 1, recovering=True)
    broker.assign(ME, isr=(ME,), epoch=broker.epoch + 2, recovering=True)

    assert [(start.end_offset, start.kept_until) for start in notes.starts] == [(5, 2)]


def test_a_clean_election_is_no_unclean_start() -> None:
    broker = a_follower()
    notes = NotesUncleanStarts()
    broker.node.assignment.losses = notes

    broker.assign(ME, isr=(ME,))

    assert notes.starts == []


def test_an_error_that_nobody_knows_is_waited_out_like_others() -> None:
    broker = a_follower()
    answer(broker, error=9_999)
    fetches = len(broker.peer_requests(FetchRequest))

    broker.advance(1_100)

    assert len(broker.peer_requests(FetchRequest)) == fetches + 1


def test_a_marker_that_makes_no_sense_does_not_get_into_the_log() -> None:
    """Nor does it end the fetching of all that comes from the same leader."""
    broker = a_follower()
    marker = a_batch(
        "no type in its key", producer_id=5, producer_epoch=0, is_transactional=True, is_control=True
    )

    answer(broker, records=bytes(stamped(marker, 0, 1)))
    assert broker.log.end_offset == 0
    fetches = len(broker.peer_requests(FetchRequest))
    broker.advance(1_100)

    assert len(broker.peer_requests(FetchRequest)) == fetches + 1


def test_what_nobody_thought_of_stops_one_partition_and_not_its_fetcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = a_follower()
    monkeypatch.setattr(type(broker.log), "append_as_follower", lambda *_, **__: {}["nobody thought of it"])

    answer(broker, records=bytes(stamped(a_batch("a"), 0, 1)))

    assert broker.partition.follower.phase is Phase.FAILED
    broker.tell_metadata(p1=SECOND)
    assert broker.assigned_code(SECOND, partition=1, epoch=1) == 0
    broker.advance(1_100)
    assert [row.partition for row in asked(broker).topics[0].partitions] == [1]
