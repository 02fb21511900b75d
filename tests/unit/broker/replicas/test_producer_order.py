"""A producer's batches come into the log in their order, whatever was refused before."""

import pytest

from ottla.broker.replicas import producer_order
from ottla.broker.replicas.producer_order import UNSETTLED_MS
from ottla.broker.runtime.log_limit import LINES_PER_WINDOW, WINDOW_SECONDS
from ottla.model.errors import ErrorCode
from support.bench.led_broker import ME, SECOND, LedBroker, a_batch
from support.bench.node_bench import a_config

FOURTH = {"producer_id": 4, "producer_epoch": 0}


def codes(broker: LedBroker, *sequences: int, epoch: int = 0, acks: int = 1) -> list[int]:
    """The answers to batches of one record each of producer 4, sent in this order."""
    return [
        broker.produce_now(
            a_batch("x", producer_id=4, producer_epoch=epoch, base_sequence=sequence), acks=acks
        ).error_code
        for sequence in sequences
    ]


def test_a_gap_in_the_sequence_is_refused() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.advance(UNSETTLED_MS)
    broker.produce_now(a_batch("a", producer_id=4, producer_epoch=0, base_sequence=0))

    answer = broker.produce_now(a_batch("b", producer_id=4, producer_epoch=0, base_sequence=5))

    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert answer.log_start_offset == 0


def test_the_log_tells_of_gaps_and_counts_those_beyond_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.advance(UNSETTLED_MS)
    broker.produce_now(a_batch("a", producer_id=4, producer_epoch=0, base_sequence=0))
    for sequence in range(5, 5 + LINES_PER_WINDOW + 3):
        broker.produce_now(a_batch("b", producer_id=4, producer_epoch=0, base_sequence=sequence))
    broker.advance(int(WINDOW_SECONDS * 1_000))
    broker.produce_now(a_batch("b", producer_id=4, producer_epoch=0, base_sequence=99))

    told = [record.getMessage() for record in caplog.records if record.name.endswith("producer_order")]

    assert len(told) == LINES_PER_WINDOW + 1
    assert "refused partition=orders-0 producer=4 epoch=0 sequence=5 last_epoch=0 last_sequence=0" in told[0]
    assert "sequence=99" in told[-1]
    assert told[-1].endswith("left_out=3")


def test_a_new_leader_has_batches_sent_again_whose_predecessors_it_refused_before_it_led() -> None:
    """librdkafka answers "out of order" with a new epoch for all that is on its way, written or not."""
    producer = {"producer_id": 4, "producer_epoch": 0}
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", base_sequence=0, **producer))
    broker.follow()
    refused = broker.produce_now(a_batch("b", base_sequence=1, **producer))
    broker.lead(isr=(ME,))

    hasty = broker.produce_now(a_batch("c", base_sequence=2, **producer))
    in_order = [broker.produce_now(a_batch("x", base_sequence=n, **producer)).error_code for n in (1, 2)]
    broker.advance(UNSETTLED_MS)
    late = broker.produce_now(a_batch("e", base_sequence=9, **producer))

    assert refused.error_code == hasty.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert in_order == [0, 0]
    assert late.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_leader_waits_for_the_first_batches_of_a_producer_it_has_not_heard_of() -> None:
    """Java's producer sends on to a new leader while its first batches wait for an answer of the old one.

    Lost there, they came behind the others, were out of order, and were sent in vain until they expired."""
    producer = {"producer_id": 4, "producer_epoch": 0}
    broker = LedBroker().lead(isr=(ME, SECOND))
    broker.follow()
    broker.lead(isr=(ME,))

    hasty = broker.produce_now(a_batch("b", base_sequence=1, **producer))
    in_order = [broker.produce_now(a_batch("x", base_sequence=n, **producer)).error_code for n in (0, 1)]
    broker.advance(UNSETTLED_MS)
    gone_by_retention = broker.produce_now(a_batch("e", base_sequence=9, producer_id=5, producer_epoch=0))

    assert hasty.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert in_order == [0, 0]
    assert gone_by_retention.error_code == 0


def test_a_leader_that_was_short_of_replicas_waits_for_the_first_batches_it_refused() -> None:
    """Seed 650037640: the ISR grew between a new producer's first batch and its second."""
    producer = {"producer_id": 4, "producer_epoch": 0}
    broker = LedBroker(a_config(min_insync_replicas=2)).lead(isr=(ME,), epoch=0)
    refused = broker.produce_now(a_batch("a", base_sequence=0, **producer), acks=-1)
    broker.lead(isr=(ME, SECOND))

    hasty = broker.produce_now(a_batch("b", base_sequence=1, **producer))
    in_order = [broker.produce_now(a_batch("x", base_sequence=n, **producer)).error_code for n in (0, 1)]

    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert hasty.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert in_order == [0, 0]


def test_the_first_leader_of_a_partition_takes_a_producer_as_it_comes() -> None:
    """There was no leader before it that could have lost anything: the topic was made again."""
    broker = LedBroker().lead(isr=(ME,), epoch=0)

    answer = broker.produce_now(a_batch("b", base_sequence=7, producer_id=4, producer_epoch=0))

    assert answer.error_code == 0


def test_a_new_leader_takes_a_batch_of_no_producer_whatever_its_sequence() -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produce_now(a_batch("a", base_sequence=7))

    assert answer.error_code == 0


def test_a_broker_that_did_not_know_the_topic_yet_waits_for_the_first_batch_it_refused() -> None:
    """A topic that was just made: its leader hears of it between a producer's first two batches."""
    broker = LedBroker()

    unknown = codes(broker, 0)
    broker.lead(isr=(ME,), epoch=0)
    answers = codes(broker, 1, 0, 1)

    assert unknown == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0]
    assert broker.log.end_offset == 2


def test_a_producer_of_a_topic_made_again_goes_on_where_it_was_refused() -> None:
    broker = LedBroker()

    codes(broker, 7, 8)
    broker.lead(isr=(ME,), epoch=0)

    assert codes(broker, 8, 7, 8) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0]


def test_a_batch_behind_one_that_replicas_were_missing_for_is_sent_again() -> None:
    broker = LedBroker(a_config(min_insync_replicas=2)).lead(isr=(ME, SECOND), epoch=0)
    codes(broker, 0)
    broker.lead(isr=(ME,))
    broker.advance(UNSETTLED_MS)
    missing = codes(broker, 1, 2, acks=-1)

    assert missing == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    again = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert codes(broker, 3, 1, 3, 2, 3) == [again, 0, again, 0, 0]
    assert codes(broker, 9) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER], "nothing is awaited any more"


def test_a_producer_that_gave_a_refused_batch_up_hears_so_in_the_end() -> None:
    broker = LedBroker(a_config(min_insync_replicas=2)).lead(isr=(ME, SECOND), epoch=0)
    codes(broker, 0)
    broker.lead(isr=(ME,))
    broker.advance(UNSETTLED_MS)
    codes(broker, 1, acks=-1)

    answers = []
    for _ in range(10):
        answers += codes(broker, 2)
        broker.advance(UNSETTLED_MS // 10)
    answers += codes(broker, 2)

    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 10 + [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_what_was_refused_of_an_older_producer_epoch_keeps_nobody_waiting() -> None:
    broker = LedBroker()
    codes(broker, 0)
    broker.lead(isr=(ME,), epoch=0)

    assert codes(broker, 1, epoch=1) == [0]


def test_a_batch_that_is_wrong_in_itself_keeps_nobody_waiting() -> None:
    broker = LedBroker(a_config(message_max_bytes=200)).lead(isr=(ME,), epoch=0)

    refused = broker.produce_now(a_batch("x" * 300, base_sequence=0, **FOURTH))

    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert codes(broker, 1) == [0]


def test_sequences_that_begin_anew_keep_their_order() -> None:
    last = 2**31 - 1
    broker = LedBroker()
    codes(broker, last, 0)
    broker.lead(isr=(ME,), epoch=0)

    assert codes(broker, 1, last, 0, 1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0, 0]


def test_the_oldest_refused_batches_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_order, "REFUSED_MAX", 2)
    broker = LedBroker()
    for producer in (4, 5, 4, 6):
        broker.produce_now(a_batch("x", producer_id=producer, producer_epoch=0, base_sequence=0))
    broker.lead(isr=(ME,), epoch=0)

    answers = {
        producer: broker.produce_now(
            a_batch("x", producer_id=producer, producer_epoch=0, base_sequence=1)
        ).error_code
        for producer in (4, 5, 6)
    }

    again = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answers == {4: again, 5: 0, 6: again}
