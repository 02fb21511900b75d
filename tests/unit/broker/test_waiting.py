"""Deadlines of parked requests: rounded up, shared, and gone with their request."""

from ottla.broker.connections import Connection
from ottla.broker.waiting import Waiting
from support.led_broker import ME, SECOND, LedBroker, a_batch
from support.node_bench import Bench


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
    return bench, Waiting(bench.node)


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
