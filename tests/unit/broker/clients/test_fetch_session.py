"""Fetch sessions on the server's side: what an incremental answer names."""

from random import Random

from ottla.broker.clients.fetch_session import EVICTION_MS, ORPHAN_MS, FetchSession, FetchSessions
from ottla.model.errors import ErrorCode
from ottla.replication.events import IsrChangeAnswered
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from support.bench.led_broker import ME, SECOND, TOPIC_ID, LedBroker, a_batch


class Reader:
    """A client with a session over partitions 0 and 1."""

    def __init__(self, replica: int = -1, isr: tuple[int, ...] = (ME,)) -> None:
        self.broker = LedBroker()
        self.broker.tell_metadata(p0=ME, p1=ME)
        for partition in (0, 1):
            self.broker.assign(ME, isr=isr, partition=partition, epoch=1)
        self.replica = replica
        self.session = 0
        self.epoch = 0

    def ask(
        self, offset: int = 0, partitions: tuple[int, ...] = (), max_wait_ms: int = 0, **more: object
    ) -> int:
        return self.broker.fetch(
            offset,
            replica=self.replica,
            session=(self.session, self.epoch),
            partitions=partitions,
            max_wait_ms=max_wait_ms,
            **more,
        )

    def fetch(self, offset: int = 0, partitions: tuple[int, ...] = (), **more: object) -> FetchResponse:
        answer = self.broker.fetched(self.ask(offset, partitions, **more))
        assert answer is not None
        self.session = answer.session_id
        self.epoch += 1
        return answer

    def named(self, answer: FetchResponse) -> list[int]:
        return [each.partition_index for topic in answer.responses for each in topic.partitions]


def test_a_full_answer_names_every_partition_and_grants_a_session() -> None:
    reader = Reader()

    answer = reader.fetch(0, (0, 1))

    assert reader.named(answer) == [0, 1]
    assert answer.session_id > 0


def test_an_incremental_answer_names_only_news() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))

    assert reader.named(reader.fetch()) == []
    reader.broker.produce_now(a_batch("a"), partition=1)
    assert reader.named(reader.fetch()) == [1]


def test_records_that_were_not_taken_are_given_again() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    reader.broker.produce_now(a_batch("a"), partition=1)
    reader.fetch()

    assert reader.named(reader.fetch()) == [1]
    assert reader.named(reader.fetch(1, (1,))) == []


def test_only_an_incremental_request_of_the_expected_epoch_is_served() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    reader.epoch = 5

    wrong = reader.broker.fetched(reader.ask())
    assert wrong is not None
    assert (wrong.error_code, wrong.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert wrong.responses == []
    reader.epoch = 1
    assert reader.fetch().error_code == 0


def test_an_unknown_session_is_refused() -> None:
    reader = Reader()
    reader.session, reader.epoch = 99, 1

    answer = reader.broker.fetched(reader.ask())

    assert answer is not None
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_of_topic_ids_is_no_session_of_names() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    request = FetchRequest(session_id=reader.session, session_epoch=1)

    answer = reader.broker.ask(request, 12)

    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_request_that_names_a_session_closes_it() -> None:
    reader = Reader()
    first = reader.fetch(0, (0, 1)).session_id
    reader.epoch = 0

    second = reader.fetch(0, (0, 1)).session_id

    assert second != first
    assert len(reader.broker.node.fetch_sessions) == 1


def test_a_final_request_gets_no_session() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    reader.epoch = -1

    answer = reader.fetch(0, (0,))

    assert answer.session_id == 0
    assert len(reader.broker.node.fetch_sessions) == 0


def test_a_session_that_forgot_everything_ends() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))

    answer = reader.fetch(0, (), forget=(0, 1))

    assert (answer.error_code, answer.session_id) == (0, 0)
    assert len(reader.broker.node.fetch_sessions) == 0


def test_a_forgotten_partition_is_not_named_any_more() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    reader.fetch(0, (), forget=(1,))

    reader.broker.produce_now(a_batch("a"), partition=1)

    assert reader.named(reader.fetch()) == []


def test_a_partition_that_is_forgotten_while_it_has_news_is_not_named_any_more() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    reader.broker.produce_now(a_batch("a"), partition=1)

    assert reader.named(reader.fetch(0, (), forget=(1,))) == []
    assert len(reader.broker.node.partitions.find("orders", 1).watchers) == 0


def test_a_parked_session_is_woken_by_one_of_its_partitions() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    parked = reader.ask(max_wait_ms=500)

    reader.broker.produce_now(a_batch("a"), partition=1)

    answer = reader.broker.fetched(parked)
    assert answer is not None
    assert reader.named(answer) == [1]


def test_a_leader_epoch_kept_by_the_session_is_fenced_after_an_election() -> None:
    """KAFKA-9338: the session must not forget which epoch was asked."""
    reader = Reader()
    reader.fetch(0, (0, 1))

    reader.broker.assign(ME, isr=(ME,), partition=1, epoch=2)
    answer = reader.fetch()

    assert [(each.partition_index, each.error_code) for each in answer.responses[0].partitions] == [
        (1, ErrorCode.FENCED_LEADER_EPOCH)
    ]


def test_a_leader_epoch_that_an_incremental_request_names_replaces_the_one_before() -> None:
    reader = Reader()
    reader.fetch(0, (0,))
    reader.broker.assign(ME, isr=(ME,), epoch=2)

    answer = reader.fetch(0, (0,), epoch=2)
    codes = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert codes == []

    reader.broker.assign(ME, isr=(ME,), epoch=3)
    assert reader.fetch().responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_partitions_with_data_take_turns() -> None:
    reader = Reader()
    reader.fetch(0, (0, 1))
    for partition in (0, 1):
        reader.broker.produce_now(a_batch("a" * 300), partition=partition)

    first = reader.named(reader.fetch(max_bytes=100))
    second = reader.named(reader.fetch(max_bytes=100))

    assert [first[0], second[0]] in ([0, 1], [1, 0])


def test_an_idle_followers_session_keeps_it_in_sync_when_the_log_grows_again() -> None:
    """Nothing is asked for a partition without news; its follower was caught up all the same."""
    reader = Reader(replica=SECOND, isr=(ME, SECOND))
    reader.fetch(0, (0, 1))
    for _ in range(200):
        reader.fetch()
        reader.broker.advance(500)

    reader.broker.produce_now(a_batch("a"))
    reader.broker.advance(20_000)

    assert reader.broker.partition.leader.isr.pending is None


def test_a_follower_outside_the_isr_joins_by_an_incremental_fetch_that_names_nothing() -> None:
    reader = Reader(replica=SECOND, isr=(ME,))
    reader.broker.node.partitions._context.live = frozenset({ME})
    reader.fetch(0, (0, 1))
    assert reader.broker.partition.leader.isr.pending is None

    reader.broker.node.partitions._context.live = frozenset({ME, SECOND})
    reader.fetch()

    assert reader.broker.partition.leader.isr.pending is not None


def test_a_follower_that_was_refused_is_proposed_again_though_nothing_is_written() -> None:
    """While it was about to join there was nothing to look at any more; now there is."""
    reader = Reader(replica=SECOND, isr=(ME,))
    reader.fetch(0, (0,))
    reader.fetch()
    leader = reader.broker.partition.leader
    epoch, change = leader.leader_epoch, leader.isr.pending.change

    refused = IsrChangeAnswered(epoch, change, ErrorCode.INELIGIBLE_REPLICA, epoch, -1, ())
    reader.broker.partition.isr_change_answered(refused)
    assert leader.isr.pending is None
    reader.fetch()

    assert leader.isr.pending is not None


def test_a_follower_whose_fetch_came_before_its_leader_knew_the_topic_is_heard_all_the_same() -> None:
    """Seed 1397601255: an idle partition's follower had said where it is, once, and was never in sync."""
    broker = LedBroker()
    parked = broker.fetch(0, replica=SECOND, session=(0, 0), epoch=1, max_wait_ms=500)
    broker.lead(isr=(ME, SECOND))
    assert broker.partition.leader.followers[SECOND].end_offset == -1

    broker.advance(600)

    answer = broker.fetched(parked)
    assert answer is not None
    assert answer.responses[0].partitions[0].error_code == 0
    assert broker.partition.leader.followers[SECOND].end_offset == 0


def test_a_follower_that_registered_anew_is_known_by_its_new_epoch_for_idle_partitions_too() -> None:
    """Seed 1397601255: the controller refused every ISR with the epoch of a session that had expired."""
    reader = Reader(replica=SECOND, isr=(ME, SECOND))
    reader.fetch(0, (0, 1), replica_epoch=23)

    reader.fetch(replica_epoch=47)

    known = [reader.broker.node.partitions.find("orders", each).leader.followers[SECOND] for each in (0, 1)]
    assert [each.broker_epoch for each in known] == [47, 47]
    assert [each.last_caught_up_ms for each in known] == [reader.broker.node.clock.monotonic_ms()] * 2


def test_a_changed_high_watermark_is_told_a_follower_without_waking_it() -> None:
    reader = Reader(replica=SECOND, isr=(ME, SECOND))
    reader.broker.produce_now(a_batch("a"))
    reader.fetch(0, (0, 1))

    parked = reader.ask(1, (0,), max_wait_ms=500)
    assert reader.broker.log.high_watermark == 1
    assert reader.broker.fetched(parked) is None

    reader.broker.advance(600)
    answer = reader.broker.fetched(parked)
    assert answer is not None
    assert [(each.partition_index, each.high_watermark) for each in answer.responses[0].partitions] == [
        (0, 1)
    ]


# --- the cache ----------------------------------------------------------------------------------------------


def a_full_fetch(partitions: int = 1) -> FetchRequest:
    asked = [FetchPartition(partition=each) for each in range(partitions)]
    return FetchRequest(
        session_id=0, session_epoch=0, topics=[FetchTopic(topic_id=TOPIC_ID, partitions=asked)]
    )


def open_sessions(slots: int) -> FetchSessions:
    sessions = FetchSessions(slots, Random(1))
    for _ in range(slots):
        assert isinstance(sessions.open(a_full_fetch(), 17, -1, now_ms=0), FetchSession)
    return sessions


def test_without_a_free_slot_a_consumer_is_served_without_a_session() -> None:
    sessions = open_sessions(2)

    assert not isinstance(sessions.open(a_full_fetch(), 17, -1, now_ms=1), FetchSession)
    assert len(sessions) == 2


def test_a_follower_pushes_out_a_consumer() -> None:
    sessions = open_sessions(2)

    assert isinstance(sessions.open(a_full_fetch(), 17, SECOND, now_ms=1), FetchSession)
    assert len(sessions) == 2


def test_a_session_idle_for_long_makes_room_for_anyone() -> None:
    sessions = open_sessions(2)

    assert isinstance(sessions.open(a_full_fetch(), 17, -1, now_ms=EVICTION_MS + 1), FetchSession)
    assert len(sessions) == 2


def test_a_session_whose_reader_died_is_given_up_though_there_is_room() -> None:
    sessions = FetchSessions(10, Random(1))
    dead = sessions.open(a_full_fetch(), 17, 2, now_ms=0)
    assert isinstance(dead, FetchSession)

    sessions.open(a_full_fetch(), 17, 2, now_ms=ORPHAN_MS)
    before = len(sessions)
    sessions.open(a_full_fetch(), 17, 2, now_ms=ORPHAN_MS + 1)

    assert (before, len(sessions)) == (2, 2)
    assert sessions.open(FetchRequest(session_id=dead.id, session_epoch=1), 17, 2, ORPHAN_MS + 1) == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
