"""Deadlines of parked requests: rounded up, shared, and gone with their request."""

import pytest

from ottla.broker.clients.connections import Connection
from ottla.broker.replicas.readers import FetchReader
from ottla.broker.runtime.parked import Waiting
from support.bench.led_broker import ME, SECOND, LedBroker, a_batch
from support.bench.node_bench import Bench


class Asked:
    """A parked request that remembers what became of it."""

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection
        self.deadline_ms = 0
        self.fate = "waits"

    def expire(self) -> None:
        self.fate = "expired"

    def abandon(self) -> None:
        self.fate = "abandoned"


def a_bench() -> tuple[Bench, Waiting]:
    bench = Bench()
    return bench, Waiting(bench.clock, bench.node.timers)


def test_a_request_expires_soon_after_its_time_and_never_before() -> None:
    for delay_ms in (1, 7, 199, 500, 1_234, 30_000, 120_000, 3_600_000, 2**31 - 1):
        bench, waiting = a_bench()
        asked = Asked()
        waiting.deadlines.add(asked, delay_ms)

        bench.advance(delay_ms - 1)
        assert asked.fate == "waits"
        bench.advance(1 + max(50, delay_ms // 10))
        assert asked.fate == "expired", delay_ms


def test_requests_of_the_same_moment_share_one_timer() -> None:
    bench, waiting = a_bench()
    for _ in range(1_000):
        waiting.deadlines.add(Asked(), 500)

    assert len(bench.node.timers._heap) == 1


def test_requests_that_would_wait_for_days_share_their_moments() -> None:
    bench, waiting = a_bench()
    for _ in range(300):
        asked = Asked()
        waiting.deadlines.add(asked, 2**31 - 1)
        waiting.deadlines.remove(asked)
        bench.advance(500)

    assert len(bench.node.timers._heap) < 10


def test_an_answered_request_leaves_nothing_behind() -> None:
    bench, waiting = a_bench()
    asked = Asked(bench.node.connections.connected(1, "PLAINTEXT", "host"))
    waiting.deadlines.add(asked, 500)

    waiting.deadlines.remove(asked)
    bench.advance(1_000)

    assert asked.fate == "waits"
    assert not any(waiting.deadlines._by_client.values())


def test_a_lost_client_takes_its_requests_along_and_no_others() -> None:
    bench, waiting = a_bench()
    gone, other = (bench.node.connections.connected(number, "PLAINTEXT", "host") for number in (1, 2))
    of_gone, of_other, of_nobody = Asked(gone), Asked(other), Asked()
    for asked in (of_gone, of_other, of_nobody):
        waiting.deadlines.add(asked, 500)

    waiting.on_client_lost(gone)
    bench.advance(1_000)

    assert [each.fate for each in (of_gone, of_other, of_nobody)] == ["abandoned", "expired", "expired"]


def test_at_the_end_everyone_is_answered() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    producer = broker.produce(a_batch("a"), acks=-1)
    consumer = broker.fetch(0, max_wait_ms=60_000)

    broker.node.waiting.stop()
    broker.settle()

    assert broker.produced(producer) is not None
    assert broker.fetched(consumer) is not None


# --- one of them fails ---


class Failing(Asked):
    """A parked request whose answer is a mistake."""

    def expire(self) -> None:
        raise ValueError("a mistake")


def test_a_request_that_cannot_expire_does_not_keep_others_of_its_moment_waiting() -> None:
    bench, waiting = a_bench()
    before, after = Asked(), Asked()
    for asked in (before, Failing(), after):
        waiting.deadlines.add(asked, 500)

    with pytest.raises(ValueError, match="a mistake"):
        bench.advance(600)
    bench.advance(0)

    assert (before.fate, after.fate) == ("expired", "expired")
    assert waiting.deadlines.count() == 0


def test_a_request_that_is_answered_because_another_expires_does_not_expire() -> None:
    bench, waiting = a_bench()
    second = Asked()

    class First(Asked):
        def expire(self) -> None:
            waiting.deadlines.remove(second)

    waiting.deadlines.add(First(), 500)
    waiting.deadlines.add(second, 500)
    bench.advance(600)

    assert second.fate == "waits"


class Reader(FetchReader):
    """A reader that notes that it was woken."""

    def __init__(self, replica_id: int, is_failing: bool) -> None:
        super().__init__(replica_id)
        self.is_failing = is_failing
        self.is_woken = False

    def wake(self) -> None:
        self.is_woken = True
        if self.is_failing:
            raise ValueError("a mistake")


@pytest.mark.parametrize("replica_id", [-1, SECOND], ids=["consumers", "followers"])
def test_a_reader_that_cannot_be_woken_does_not_keep_the_others_asleep(replica_id: int) -> None:
    bench = Bench()
    readers = [Reader(replica_id, is_failing=number == 1) for number in range(3)]
    for reader in readers:
        bench.node.waiting.note_readable(reader)

    with pytest.raises(ValueError, match="a mistake"):
        bench.settle()
    bench.advance(0)

    assert all(reader.is_woken for reader in readers)


class FailingAppend:
    """Somebody who waits for a commit, and makes a mistake when it comes."""

    end_offset = 1
    is_over = False

    def settled(self, error_code: int) -> None:
        raise ValueError("a mistake")


def test_a_producer_that_cannot_be_answered_does_not_keep_the_others_waiting() -> None:
    broker = LedBroker().lead(isr=(ME, SECOND))
    broker.tell_metadata(p1=ME)
    assert broker.assigned_code(ME, isr=(ME, SECOND), partition=1) == 0
    broker.partition.await_commit(FailingAppend())
    waiting = [broker.produce(a_batch("a"), acks=-1, partition=index) for index in (0, 1)]

    with pytest.raises(ValueError, match="a mistake"):
        broker.fetch(1, replica=SECOND, partitions=(0, 1), epoch=-1)
    broker.settle()
    broker.advance(0)

    assert None not in [broker.produced(each) for each in waiting]


# --- a client that has gone ---


def test_a_request_that_begins_to_wait_after_its_client_has_gone_leaves_nothing_behind() -> None:
    bench, waiting = a_bench()
    gone = bench.node.connections.connected(1, "PLAINTEXT", "host")
    bench.node.connections.lost(1)
    asked = Asked(gone)

    waiting.deadlines.add(asked, 500)
    assert waiting.deadlines._by_client == {}
    bench.advance(600)

    assert asked.fate == "expired"
