"""Markers on their way: one queue a broker, sent until every partition has its own."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.coordinating.markers import (
    ATTEMPTS_TOLD,
    ATTEMPTS_UNKNOWN,
    RETRY_MAX_MS,
    RETRY_MS,
    MarkerSender,
)
from ottla.broker.metadata.image import (
    LiveBroker,
    MetadataImage,
    MetadataUpdate,
    PartitionInfo,
    PartitionUpdate,
)
from ottla.broker.peers.links import LinkLost
from ottla.broker.runtime.timers import Timers
from ottla.coordinator.shard import Producer, SendMarkers
from ottla.model.errors import ErrorCode
from ottla.model.ids import LEADER_DURING_DELETE, BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ONE, TWO = BrokerId(1), BrokerId(2)
NOBODY = BrokerId(-1)
A, B, C = (TopicPartition("t", number) for number in range(3))
TOPIC_ID = TopicId(bytes(16))


class Clock:
    now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms


class Link:
    """In place of a line to a broker: it keeps what it should send."""

    def __init__(self) -> None:
        self.requests: list[tuple[WriteTxnMarkersRequest, Any]] = []

    def request(self, message: WriteTxnMarkersRequest, version: int, then: Any) -> None:
        assert version == 1
        self.requests.append((message, then))


class Links(dict[BrokerId, Link]):
    def get(self, broker: BrokerId, lane: str) -> Link:  # type: ignore[override]
        return self.setdefault(broker, Link())


class World:
    """Partitions A and B are led by broker 1, C by broker 2."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.timers = Timers(self.clock)
        self.links = Links()
        self.metadata = MetadataImage()
        self.sender = MarkerSender(self.timers, self.links, self.metadata)  # type: ignore[arg-type]
        self.told: list[tuple[str, list[TopicPartition]]] = []
        self.is_current = True

    def led(self) -> World:
        self.leaders({A: ONE, B: ONE, C: TWO})
        return self

    def leaders(
        self, leaders: dict[TopicPartition, BrokerId], alive: tuple[BrokerId, ...] = (ONE, TWO)
    ) -> None:
        updates = [
            PartitionUpdate(tp, TOPIC_ID, PartitionInfo(leader, LeaderEpoch(0), (), 0, (), (), 0))
            for tp, leader in leaders.items()
        ]
        brokers = {broker: LiveBroker(broker, {}, None) for broker in alive}
        self.sender.on_metadata_changed(self.metadata.apply(MetadataUpdate(ONE, brokers, updates)))

    def send(self, name: str, producer_id: int, *partitions: TopicPartition) -> None:
        effect = SendMarkers(name, Producer(producer_id, 3), True, frozenset(partitions))
        self.sender.send(
            effect, 5, lambda done: self.told.append((name, sorted(done))), is_current=lambda: self.is_current
        )

    def advance(self, ms: int = 0) -> None:
        self.clock.now_ms += ms
        self.timers.run_due()

    def sent(self, broker: BrokerId) -> list[list[tuple[int, TopicPartition]]]:
        """The requests to a broker that are not yet answered."""
        return [_rows(request) for request, _ in self.links.get(broker, "").requests]

    def answer(self, broker: BrokerId, **codes: ErrorCode) -> None:
        """Answer the oldest request; ``t1=…`` is the code of partition 1, all others have none."""
        request, then = self.links[broker].requests.pop(0)
        then(
            WriteTxnMarkersResponse(
                markers=[
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    WritableTxnMarkerPartitionResult(
                                        partition_index=index,
                                        error_code=codes.get(f"t{index}", ErrorCode.NONE),
                                    )
                                    for index in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in request.markers
                ]
            )
        )


def _rows(request: WriteTxnMarkersRequest) -> list[tuple[int, TopicPartition]]:
    return [
        (marker.producer_id, TopicPartition(topic.name, index))
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def test_all_markers_of_a_turn_for_a_broker_go_in_one_request() -> None:
    world = World().led()

    world.send("a", 1, A, C)
    world.send("b", 2, A, B)
    assert world.sent(ONE) == []
    world.advance()

    assert world.sent(ONE) == [[(1, A), (2, A), (2, B)]]
    assert world.sent(TWO) == [[(1, C)]]
    request = world.links[TWO].requests[0][0]
    [marker] = request.markers
    assert (marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (3, 5, True)


def test_what_comes_meanwhile_goes_together_when_the_answer_is_there() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.advance()
    world.send("b", 2, A)
    world.send("c", 3, B)
    world.advance()
    assert len(world.sent(ONE)) == 1

    world.answer(ONE)
    world.advance()

    assert world.sent(ONE) == [[(2, A), (3, B)]]
    assert world.told == [("a", [A])]


def test_a_refused_marker_is_sent_again_after_a_pause_that_grows() -> None:
    world = World().led()
    world.send("a", 1, A, B)
    world.advance()
    pauses = []
    for _ in range(8):
        world.answer(ONE, t1=ErrorCode.NOT_ENOUGH_REPLICAS)
        before_ms = world.clock.now_ms
        while not world.sent(ONE):
            world.advance(1)
            world.advance()
        pauses.append(world.clock.now_ms - before_ms)

    assert world.told == [("a", [A])]
    assert world.sent(ONE) == [[(1, B)]]
    assert pauses == [RETRY_MS, 100, 200, 400, 800, *[RETRY_MAX_MS] * 3]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_broker_that_does_not_lead_yet_or_any_more_is_asked_again(code: ErrorCode) -> None:
    """KAFKA-5610: right after an election a replica may not know yet that it leads."""
    world = World().led()
    world.send("a", 1, A)
    world.advance()

    world.answer(ONE, t0=code)
    world.advance(RETRY_MS)
    world.advance()

    assert world.told == []
    assert world.sent(ONE) == [[(1, A)]]


def test_markers_of_a_lost_request_are_sent_again() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.advance()

    world.links[ONE].requests.pop()[1](LinkLost("gone"))
    world.advance(RETRY_MS)
    world.advance()

    assert world.sent(ONE) == [[(1, A)]]
    world.answer(ONE)
    assert world.told == [("a", [A])]


def test_a_partition_that_the_answer_leaves_out_is_asked_again() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.advance()

    world.links[ONE].requests.pop()[1](WriteTxnMarkersResponse(markers=[]))
    world.advance(RETRY_MS)
    world.advance()

    assert world.sent(ONE) == [[(1, A)]]
    assert world.told == []


def test_when_the_leader_moves_the_marker_goes_to_the_next_one_at_once() -> None:
    """The old leader may never answer; if it does, that counts no more."""
    world = World().led()
    world.send("a", 1, A)
    world.advance()

    world.leaders({A: TWO})
    world.advance()

    assert world.sent(TWO) == [[(1, A)]]
    world.answer(ONE)
    assert world.told == []
    world.answer(TWO)
    assert world.told == [("a", [A])]


def test_a_partition_without_a_leader_waits_for_one() -> None:
    world = World().led()
    world.leaders({A: NOBODY})
    world.send("a", 1, A)
    world.advance(10 * RETRY_MAX_MS)
    assert (world.sent(ONE), len(world.sender)) == ([], 1)

    world.leaders({A: TWO})
    world.advance()

    assert world.sent(TWO) == [[(1, A)]]


def test_a_dead_leader_is_asked_nothing_until_it_is_back() -> None:
    world = World().led()
    world.leaders({}, alive=(TWO,))
    world.send("a", 1, A)
    world.advance()
    assert world.sent(ONE) == []

    world.leaders({})
    world.advance()

    assert world.sent(ONE) == [[(1, A)]]


def test_what_is_queued_for_a_broker_that_does_not_answer_goes_to_the_next_leader_too() -> None:
    """A broker that stands still holds its line for half a minute; nothing may wait for it behind that."""
    world = World().led()
    world.send("a", 1, A)
    world.advance()
    world.send("b", 2, B)
    world.send("c", 3, B)
    world.advance()
    assert world.sent(ONE) == [[(1, A)]]

    world.leaders({A: TWO, B: TWO}, alive=(TWO,))
    world.advance()

    assert world.sent(TWO) == [[(1, A), (2, B), (3, B)]]
    world.answer(TWO)
    world.links[ONE].requests.pop()[1](LinkLost("no answer"))
    world.advance()
    assert (world.sent(ONE), len(world.sender)) == ([], 0)
    assert world.told == [("a", [A]), ("b", [B]), ("c", [B])]


def test_what_stays_with_its_leader_stays_queued_there() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.advance()
    world.send("b", 2, B)

    world.leaders({C: ONE})
    world.answer(ONE)
    world.advance()

    assert world.sent(ONE) == [[(2, B)]]


def test_a_broker_whose_queue_was_emptied_and_filled_still_gets_one_request_at_a_time() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.leaders({A: TWO})
    world.timers.after(0, lambda: world.send("c", 3, B))
    world.leaders({A: ONE})
    world.advance()
    assert world.sent(ONE) == [[(1, A)]]

    world.answer(ONE)
    world.advance()
    world.answer(ONE)

    assert (world.told, len(world.sender)) == ([("a", [A]), ("c", [B])], 0)


def test_a_deleted_partition_needs_no_marker() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.advance()

    world.leaders({A: BrokerId(LEADER_DURING_DELETE)})

    assert world.told == [("a", [A])]


def test_a_partition_that_was_deleted_before_needs_no_marker_after_a_while() -> None:
    world = World().led()
    world.send("a", 1, TopicPartition("gone", 0))

    world.advance(RETRY_MS)
    assert world.told == []
    for _ in range(ATTEMPTS_UNKNOWN):
        world.advance(RETRY_MAX_MS)

    assert (world.told, len(world.sender)) == ([("a", [TopicPartition("gone", 0)])], 0)


def test_a_partition_of_which_the_controller_tells_a_moment_later_gets_its_marker() -> None:
    """This broker became coordinator before it heard of a topic that the last coordinator knew: to take it
    for deleted would leave the transaction open there for ever."""
    world = World().led()
    new = TopicPartition("new", 0)
    world.send("a", 1, new)
    world.advance()
    assert world.told == []

    world.leaders({new: TWO})
    world.advance()

    assert world.sent(TWO) == [[(1, new)]]
    world.answer(TWO)
    assert world.told == [("a", [new])]


def test_before_the_first_word_of_the_controller_nothing_counts_as_deleted() -> None:
    world = World()
    world.send("a", 1, A)
    assert world.told == []

    world.led()
    world.advance()

    assert world.sent(ONE) == [[(1, A)]]


def test_markers_of_a_term_that_is_over_are_forgotten() -> None:
    world = World().led()
    world.send("a", 1, A)
    world.send("a", 1, C)
    world.advance()
    world.send("a", 2, A)

    world.is_current = False
    world.answer(ONE)
    world.links[TWO].requests.pop()[1](LinkLost("gone"))
    world.advance(RETRY_MS)
    world.advance()

    assert (world.told, world.sent(ONE), world.sent(TWO), len(world.sender)) == ([], [], [], 0)


def test_a_marker_of_a_term_that_is_over_waits_for_no_leader() -> None:
    world = World().led()
    world.leaders({A: NOBODY})
    world.send("a", 1, A)

    world.is_current = False
    world.advance(RETRY_MS)

    assert len(world.sender) == 0


def test_a_marker_that_nobody_takes_is_told_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    world = World().led()
    world.send("payments", 1, A)
    world.advance()

    for _ in range(ATTEMPTS_TOLD):
        world.answer(ONE, **{f"t{A.partition}": ErrorCode.NOT_ENOUGH_REPLICAS})
        world.advance(RETRY_MAX_MS)
        world.advance()

    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert f"transactional_id=payments partition={A} attempts={ATTEMPTS_TOLD}" in told
    assert "reason=broker 1 says NOT_ENOUGH_REPLICAS: bring the partition's replicas back" in told
